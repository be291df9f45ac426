"""Client has a method for each operation of the API. docs/reference/api.md describes requests and answers."""

from __future__ import annotations

import email.utils
import gzip
import http.client
import io
import json
import os
import select
import shutil
import socket
import ssl
import tempfile
import time
import uuid
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO, Iterator, Mapping, Sequence
from urllib.parse import quote, unquote, urlencode, urlsplit

if TYPE_CHECKING:
    import pyarrow
    from typing_extensions import Unpack

    from . import types

    Names = str | Sequence[str]  # one or several

GZIP_FROM = 4 << 10  # size from which a request is compressed, bytes
MOST_TAGGED = 16  # answers that are kept
FIT_TIMEOUT = 1230.0  # of a fit, seconds: the server lets one wait and run for 10 minutes each


class Error(Exception):
    """An error response of the server, with the fields of its problem document (RFC 9457).

    status is 0 where there is no complete answer: no connection, a timeout, a connection that is lost midway.
    errors lists what is wrong, each with "location", "message" and "value". problem has all fields, such as
    "infeasible". request_id is the id of the request in the server's logs.
    """

    def __init__(self, problem: types.Problem, request_id: str = "") -> None:
        super().__init__(problem, request_id)
        self.problem = problem
        self.request_id = request_id
        self.status = problem.get("status", 0)
        self.type = problem.get("type", "")
        self.title = problem.get("title", "")
        self.detail = problem.get("detail", "")
        self.errors = problem.get("errors") or []

    def __str__(self) -> str:
        parts = [f"{self.status} {self.title}", self.detail]
        parts += [f"{e.get('location', '')}: {e.get('message', '')}" for e in self.errors]
        if self.status >= 500 and self.request_id:
            parts.append(f"request {self.request_id}")
        return "; ".join(p for p in parts if p)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """Sends requests to pacer serve. Threads may share it; its connections are kept open.

    url is http://HOST:PORT, https://HOST:PORT, unix:/PATH or http+unix://PATH with %2F for /. token is the bearer
    token. timeout bounds each wait for the server, in seconds. ca is a file with the certificates to trust instead of
    the system's; client_cert is a file with certificate and key, or a pair of files.

    A request is repeated up to retries times while the server refuses connections or is overloaded: 429, or 503, with
    Retry-After. Each wait is max_wait seconds at most. Where the connection is lost midway, questions, listings and
    put_measurements are repeated, other writes are not: the server may have carried them out. A timeout is an Error at
    once.

    models, accelerators, frameworks and cards are kept with their ETag: the server sends them again once they change.
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 60.0, ca: str | None = None,
                 client_cert: str | tuple[str, str] | None = None, retries: int = 4, max_wait: float = 10.0) -> None:
        parts = urlsplit(url)
        self._socket = ""
        if parts.scheme == "unix":
            self._socket = parts.path
        elif parts.scheme == "http+unix":
            self._socket = unquote(parts.netloc)
        elif parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not the address of a server, want a form like http://127.0.0.1:8470")
        self.url, self.timeout, self.retries, self.max_wait = url, timeout, retries, max_wait
        self.token = (token or "").strip()  # files of tokens end with a new line
        self._host, self._port = parts.hostname or "", parts.port
        self._prefix = "" if self._socket else parts.path.rstrip("/")
        self._tls = None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context(cafile=ca)
            if client_cert is not None:
                self._tls.load_cert_chain(*((client_cert,) if isinstance(client_cert, str) else client_cert))
        elif ca is not None or client_cert is not None:
            raise ValueError(f"{url!r} is not https: leave out ca and client_cert")
        self._tagged: dict[str, tuple[str, bytes]] = {}  # ETag and answer by target
        self._idle: list[tuple[int, http.client.HTTPConnection]] = []  # each with the process that opened it

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections that are idle. The next request opens a new one."""
        while (connection := self._idle_connection()) is not None:
            connection.close()

    # Questions.

    def predict(self, **request: Unpack[types.PredictRequest]) -> types.Plans:
        """Step time and memory of a plan."""
        return self._post("/v1/predict", request)

    def predict_batch(self, questions: Sequence[types.PredictRequest]) -> types.Batch:
        """Step time and memory of up to 10000 plans. A row has "plan" or "problem"."""
        return self._post("/v1/predict/batch", {"questions": list(questions)})

    def plan(self, **request: Unpack[types.PlanRequest]) -> types.Plans:
        """The best plans on given devices. from_ is the field "from"."""
        return self._post("/v1/plan", request)

    def curve(self, **request: Unpack[types.CurveRequest]) -> types.Curve:
        """Best throughput on every number of devices."""
        return self._post("/v1/curve", request)

    def recommend(self, **request: Unpack[types.RecommendRequest]) -> types.Recommendation:
        """How many devices to train on, and their type, with time and cost."""
        return self._post("/v1/recommend", request)

    def fit_check(self, **request: Unpack[types.FitCheckRequest]) -> types.FitCheck:
        """Whether a plan fits, its headroom, and changes that make it fit."""
        return self._post("/v1/fit-check", request)

    def check(self, **request: Unpack[types.CheckRequest]) -> types.Check:
        """Reads a launch file: whether it fits, its speed, and what would be better."""
        return self._post("/v1/check", request)

    def nearest(self, **request: Unpack[types.NearestRequest]) -> types.Nearest:
        """The measurements nearest to a plan."""
        return self._post("/v1/nearest", request)

    def calibrate_next(self, **request: Unpack[types.CalibrateNextRequest]) -> types.CalibrateNext:
        """Which plans to measure next, in order, and why."""
        return self._post("/v1/calibrate-next", request)

    def network(self, config: Mapping[str, Any]) -> types.Network:
        """The network of a config.json, for the field "network" of other requests."""
        return self._post("/v1/network", {"config": dict(config)})

    def oracle_predict(self, **request: Unpack[types.OraclePredictRequest]) -> types.OraclePrediction:
        """Throughput and memory of a configuration that is given by figures."""
        return self._post("/v1/oracle/predict", request)

    def oracle_best(self, **request: Unpack[types.OraclePlanRequest]) -> types.OracleChoice:
        """The best plan of a model and accelerator that are given by figures."""
        return self._post("/v1/oracle/best", request)

    def oracle_rank(self, **request: Unpack[types.OraclePlanRequest]) -> types.OracleRanking:
        """Plans, best first."""
        return self._post("/v1/oracle/rank", request)

    def oracle_curve(self, **request: Unpack[types.OraclePlanRequest]) -> types.OracleCurve:
        """The best plan of every number of devices."""
        return self._post("/v1/oracle/curve", request)

    # Listings.

    def models(self) -> types.Models:
        """Known networks."""
        return self._get("/v1/models")

    def accelerators(self) -> types.Accelerators:
        """Known device types."""
        return self._get("/v1/accelerators")

    def frameworks(self) -> types.Frameworks:
        """Training frameworks that plans are written for: the values of "emit"."""
        return self._get("/v1/frameworks")

    def cards(self) -> types.Cards:
        """Performance models that are fitted on the server."""
        return self._get("/v1/cards")

    def sources(self) -> types.Sources:
        """Measurements by source, and whether they are used."""
        return self._get("/v1/sources")

    def measurements(self) -> types.Measurements:
        """How many measurements are stored of each model, accelerator, source and outcome."""
        return self._get("/v1/measurements")

    # Measurements.

    def put_measurements(self, measurements: Sequence[types.MeasurementBody], key: str | None = None) -> types.Stored:
        """Stores up to 10000 measurements, all or none. They are on the server's disk when this returns.

        A repetition stores nothing twice, since each call has an Idempotency-Key: key, else a new one.
        """
        return self._post("/v1/measurements", {"measurements": list(measurements)}, key=key or uuid.uuid4().hex)

    def rows(self, model: Names = (), accelerator: Names = (), source: Names = (), outcome: Names = (),
             page: int = 100) -> Iterator[types.Row]:
        """Yields the stored measurements that the names select, reading pages of up to page rows."""
        query: dict[str, Any] = {"model": model, "accelerator": accelerator, "source": source, "outcome": outcome,
                                 "limit": page}
        while True:
            answer: types.Rows = self._get("/v1/measurements/rows", query)
            yield from answer["rows"]
            query["cursor"] = answer.get("next")
            if not query["cursor"]:
                return

    def delete_measurements(self, source: str, reason: str = "", dry_run: bool = False) -> types.Forgotten:
        """Deletes the measurements of a source; with dry_run it counts them alone."""
        query = {"source": source, "reason": reason, "dry_run": str(dry_run).lower()}
        return self._json("DELETE", "/v1/measurements", query, repeat=dry_run)

    def export(self, file: str | os.PathLike[str], format: str = "arrow", model: Names = (), accelerator: Names = (),
               source: Names = ()) -> None:
        """Writes the measurements that the names select to a file, in format "arrow" or "parquet"."""
        query = {"format": format, "model": model, "accelerator": accelerator, "source": source}
        self._save("/v1/measurements/export", file, query)

    def table(self, model: Names = (), accelerator: Names = (), source: Names = ()) -> pyarrow.Table:
        """The measurements that the names select, as a table of pyarrow, which must be installed."""
        import pyarrow.ipc

        query = {"format": "arrow", "model": model, "accelerator": accelerator, "source": source}
        return pyarrow.ipc.open_file(self._call("GET", "/v1/measurements/export", query)).read_all()

    def fit(self, **request: Unpack[types.FitRequest]) -> types.FitResponse:
        """Fits performance models to stored measurements again. This may take minutes."""
        return self._post("/v1/fit", request, repeat=False, timeout=max(self.timeout, FIT_TIMEOUT))

    def campaigns(self) -> types.Campaigns:
        """How far the campaigns are that measure into the store of the server."""
        return self._get("/v1/campaigns")

    def post_campaign(self, **request: Unpack[types.Progress]) -> types.Progress:
        """Says how far a campaign is."""
        return self._post("/v1/campaigns", request, repeat=False)

    def backup(self, file: str | os.PathLike[str]) -> None:
        """Writes a copy of the server's store to a file, for pacer store restore."""
        self._save("/v1/backup", file)

    def verify_store(self) -> types.Verification:
        """Checks all files and measurements of the store. "faults" lists what is damaged."""
        return self._post("/v1/store/verify", {}, timeout=max(self.timeout, FIT_TIMEOUT))

    def compact_store(self) -> types.Compaction:
        """Gives back the disk space of deleted and replaced measurements."""
        return self._post("/v1/store/compact", {}, repeat=False, timeout=max(self.timeout, FIT_TIMEOUT))

    # Simulations.

    def simulate(self, **request: Unpack[types.SimulationRequest]) -> types.Simulation:
        """Starts a simulation of scheduling policies. wait_simulation returns its figures."""
        return self._post("/v1/simulations", request, repeat=False)

    def simulations(self) -> types.Simulations:
        """The last simulations, the newest first, without figures."""
        return self._get("/v1/simulations")

    def simulation(self, id: str) -> types.Simulation:
        """The progress of a simulation, and its figures once it is done."""
        return self._get(f"/v1/simulations/{quote(id, safe='')}")

    def wait_simulation(self, id: str, timeout: float = float("inf")) -> types.Simulation:
        """Waits until a simulation has ended: "status" is then done, failed or cancelled.

        Raises TimeoutError if that takes longer than timeout seconds.
        """
        end, pause = time.monotonic() + timeout, 0.05
        while True:
            state = self.simulation(id)
            if state["status"] not in ("waiting", "running"):
                return state
            if time.monotonic() + pause > end:
                raise TimeoutError(f"simulation {id} is {state['status']} after {timeout} s")
            time.sleep(pause)
            pause = min(1.5 * pause, 2.0)

    def simulation_charts(self, id: str) -> dict[str, Any]:
        """The data of the charts of a simulation that is done."""
        return json.loads(self._text(f"/v1/simulations/{quote(id, safe='')}/charts"))

    def simulation_report(self, id: str) -> str:
        """The report of a simulation that is done, as a web page."""
        return self._text(f"/v1/simulations/{quote(id, safe='')}/report")

    def delete_simulation(self, id: str) -> types.Simulation:
        """Deletes a simulation. One that has not ended is cancelled."""
        return self._json("DELETE", f"/v1/simulations/{quote(id, safe='')}", repeat=False)

    # The server.

    def healthy(self) -> bool:
        """Whether the server answers."""
        return self._up("/healthz")

    def ready(self) -> bool:
        """Whether the server accepts requests: False during its shutdown too."""
        return self._up("/readyz")

    def metrics(self) -> str:
        """Figures of the server, in the text format of Prometheus."""
        return self._text("/metrics")

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document of the API."""
        return self._get("/openapi.json")

    def version(self) -> str:
        """The version of the server."""
        return self.openapi()["info"]["version"]

    def build(self) -> types.Version:
        """Version and build of the server, and the contract of its API."""
        return self._get("/v1/version")

    # Requests.

    def _get(self, path: str, query: Mapping[str, Any] = {}) -> Any:
        return self._json("GET", path, query)

    def _post(self, path: str, body: Mapping[str, Any], **how: Any) -> Any:
        # Arguments have a _ behind names that are keywords of Python.
        return self._json("POST", path, body={name.rstrip("_"): value for name, value in body.items()}, **how)

    def _json(self, method: str, path: str, query: Mapping[str, Any] = {}, **how: Any) -> Any:
        answer = self._call(method, path, query, **how).read()
        try:
            return json.loads(answer)
        except ValueError as e:
            detail = f"{method} {path} of {self.url}: {answer[:200].decode(errors='replace')!r} is no JSON"
            raise Error({"status": 0, "title": "No answer of pacer serve", "detail": detail}) from e

    def _text(self, path: str) -> str:
        return self._call("GET", path).read().decode()

    def _up(self, path: str) -> bool:
        try:
            self._call("GET", path, retries=0)
        except Error as e:
            if e.status in (0, 503):
                return False
            raise
        return True

    def _save(self, path: str, file: str | os.PathLike[str], query: Mapping[str, Any] = {}) -> None:
        """Writes an answer to a file, which is replaced once the answer is complete."""
        directory, name = os.path.split(os.path.abspath(file))
        handle, part = tempfile.mkstemp(dir=directory, prefix=name)
        try:
            with open(handle, "wb") as out:
                self._call("GET", path, query, out=out)
                out.flush()
                os.fsync(out.fileno())
            os.replace(part, file)
        except BaseException:
            os.unlink(part)
            raise

    def _call(self, method: str, path: str, query: Mapping[str, Any] = {}, body: Any = None, key: str = "",
              repeat: bool = True, retries: int | None = None, timeout: float | None = None,
              out: BinaryIO | None = None) -> BinaryIO:
        """Sends a request, and again where that may help, and returns its answer, in out if given.

        repeat says that the request may be sent again where it is unknown whether the server has answered it.
        """
        headers = {"Accept": "application/json, */*", "Accept-Encoding": "gzip", "User-Agent": "pacer-python"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if key:
            headers["Idempotency-Key"] = key
        data = None
        if body is not None:
            data = json.dumps(body, allow_nan=False).encode()
            headers["Content-Type"] = "application/json"
            if len(data) >= GZIP_FROM:
                data = gzip.compress(data, 1)
                headers["Content-Encoding"] = "gzip"
        selected = urlencode({name: value for name, value in query.items() if value or value == 0}, doseq=True)
        target = self._prefix + path + (f"?{selected}" if selected else "")
        tag, kept = self._tagged.get(target, ("", b"")) if method == "GET" and out is None else ("", b"")
        if tag:
            headers["If-None-Match"] = tag
        left = self.retries if retries is None else retries
        pause = 0.1
        while True:
            try:
                response, answer = self._once(method, target, data, headers, timeout or self.timeout, out)
            except (OSError, EOFError, zlib.error, http.client.HTTPException) as e:
                lost = isinstance(e, (ConnectionError, EOFError, ssl.SSLEOFError, http.client.HTTPException))
                if left <= 0 or not (lost and repeat or isinstance(e, ConnectionRefusedError)):
                    detail = f"{method} {path} of {self.url}: {e or type(e).__name__}"
                    raise Error({"status": 0, "title": "No complete answer", "detail": detail}) from e
                wait, pause = pause, 2 * pause
            else:
                if response.status == 304 and tag:
                    return io.BytesIO(kept)
                if response.status == 200:
                    if out is None:
                        self._keep(target, response.headers.get("ETag", ""), answer)
                    return answer
                after = _retry_after(response)
                if key and response.status == 409:
                    after = 1.0  # the server still answers the request before
                if left <= 0 or after is None:
                    raise Error(_problem(response, answer.read()), response.headers.get("X-Request-Id", ""))
                wait = after
            left -= 1
            time.sleep(min(wait, self.max_wait))

    def _keep(self, target: str, tag: str, answer: BinaryIO) -> None:
        """Keeps an answer that has a tag."""
        if tag and (target in self._tagged or len(self._tagged) < MOST_TAGGED):
            self._tagged[target] = (tag, answer.read())
            answer.seek(0)

    def _once(self, method: str, target: str, data: bytes | None, headers: Mapping[str, str], timeout: float,
              out: BinaryIO | None) -> tuple[http.client.HTTPResponse, BinaryIO]:
        """Sends a request once. Returns its response and the body, which is in out where the status is 200."""
        connection, whole = self._connection(timeout), True
        try:
            try:
                connection.request(method, target, body=data, headers=headers)
            except (BrokenPipeError, ConnectionResetError):
                whole = False  # the server has refused the rest of the body: its answer says why
            response = connection.getresponse()
            answer = out if out and response.status == 200 else io.BytesIO()
            answer.seek(0)
            answer.truncate()
            compressed = response.headers.get("Content-Encoding") == "gzip"
            shutil.copyfileobj(gzip.GzipFile(fileobj=response) if compressed else response, answer)
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            answer.seek(0)
        except BaseException:
            connection.close()
            raise
        if whole and connection.sock:
            self._idle.append((os.getpid(), connection))
        else:
            connection.close()
        return response, answer

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        """Returns an open connection: an idle one that the server has not closed, else a new one."""
        while (idle := self._idle_connection()) is not None:
            if idle.sock and not _readable(idle.sock):
                idle.sock.settimeout(timeout)
                return idle
            idle.close()
        if self._socket:
            connection: http.client.HTTPConnection = _UnixConnection(self._socket, timeout)
        elif self._tls:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        connection.connect()
        return connection

    def _idle_connection(self) -> http.client.HTTPConnection | None:
        """Takes an idle connection of this process. Those of the parent process are closed here, not there."""
        while True:
            try:
                process, connection = self._idle.pop()
            except IndexError:
                return None
            if process == os.getpid():
                return connection
            connection.close()


def _readable(sock: socket.socket) -> bool:
    """Whether an idle connection has something to read: its end."""
    try:
        return bool(select.select([sock], [], [], 0)[0])
    except ValueError:  # too high a file descriptor for select
        return True


def _retry_after(response: http.client.HTTPResponse) -> float | None:
    """The wait that an overloaded server asks for, seconds; None for other responses."""
    value = response.headers.get("Retry-After", "")
    if response.status not in (429, 503):
        return None
    if value.isdecimal():
        return float(value)
    try:
        return max(email.utils.parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return None


def _problem(response: http.client.HTTPResponse, body: bytes) -> types.Problem:
    problem: Any = {"status": response.status, "title": response.reason}
    try:
        problem.update(json.loads(body))
    except (TypeError, ValueError):  # not a response of pacer serve
        problem["detail"] = body[:200].decode(errors="replace")
    return problem
