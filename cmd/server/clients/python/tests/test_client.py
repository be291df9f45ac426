"""Tests of the client against a running server: go test ./cmd/server -run TestPythonClient starts it and these."""

import ast
import json
import os
import pathlib
import pickle
import random
import socket
import sys
import tempfile
import threading
import typing
import unittest

from pacer import Client, Error, types

# Addresses and tokens: see python_test.go.
SERVER = json.loads(os.environ["PACER_TEST_SERVER"])
LLAMA = {"model": "llama3-8b", "accelerator": "h100"}
PLAN = "dp=8,mb=2,ga=8,zero=3,recompute=full"


def measurement(accumulation, source="ours"):
    plan = f"dp=8,ga={accumulation},zero=3,recompute=full"
    return {"config": {**LLAMA, "plan": plan, "shape": "8"}, "outcome": "ok", "step_sec": [1.9 * accumulation],
            "source": source}


class Test(unittest.TestCase):
    def client(self, server="url", token="admin", **options):
        c = Client(SERVER[server], token=SERVER.get(token), **options)
        self.addCleanup(c.close)
        return c

    def fails(self, status, call, *args, **fields):
        with self.assertRaises(Error) as caught:
            call(*args, **fields)
        self.assertEqual(caught.exception.status, status, caught.exception)
        return caught.exception


class Operations(Test):
    def test_questions(self):
        c = self.client()
        best = c.plan(**LLAMA, devices=16, global_batch=128, top=1)["plans"][0]
        self.assertGreater(best["step_time_s"], 0)
        moved = c.plan(**LLAMA, devices=16, global_batch=128, from_=PLAN, remaining=1e6, top=1)
        self.assertEqual(moved["move"]["from"][:4], "dp=8")
        one = c.predict(**LLAMA, plan=PLAN)["plans"][0]
        batch = c.predict_batch([{**LLAMA, "plan": PLAN}, {**LLAMA, "plan": "dp=0"}])["rows"]
        self.assertEqual(batch[0]["plan"]["step_time_s"], one["step_time_s"])
        self.assertEqual(batch[1]["problem"]["status"], 422)
        self.assertEqual(len(c.curve(**LLAMA, max_devices=8, global_batch=8)["points"]), 8)
        self.assertGreater(c.recommend(model="llama3-8b", tokens=1e9, have="h100:16@2.1")["cheapest"]["days"], 0)
        self.assertTrue(c.fit_check(**LLAMA, plan=PLAN)["fits"])
        launch = c.predict(**LLAMA, plan=PLAN, emit="torchtitan")["launch"]
        file = {"file": launch["file"], "text": launch["text"], "devices": 8}
        self.assertEqual(c.check(**file)["missing"]["field"], "accelerator")
        self.assertEqual(c.check(**file, accelerator="h100")["plan"]["plan"], one["plan"])
        config = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                  "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
                  "max_position_embeddings": 8192}
        self.assertEqual(c.network(config)["network"]["layers"], 32)

    def test_listings(self):
        c = self.client()
        self.assertIn("Llama3-8B", [m["name"] for m in c.models()["models"]])
        self.assertIn("A10G", [a["name"] for a in c.accelerators()["accelerators"]])
        self.assertIn("megatron", [f["name"] for f in c.frameworks()["frameworks"]])
        self.assertEqual(c.version(), SERVER["version"])
        self.assertEqual((c.build()["version"], c.build()["contract"]), (SERVER["version"], "v1"))
        self.assertTrue(c.healthy() and c.ready())
        self.assertIn("pacer_http_requests_total", c.metrics())

    def test_tagged_answers_are_kept(self):
        c, sent = self.client(), []
        once = c._once

        def counted(*args):
            response, answer = once(*args)
            sent.append((response.status, args[1]))
            return response, answer

        c._once = counted
        first = c.models()
        first["models"].clear()  # the caller's own
        again = c.models()
        self.assertGreater(len(again["models"]), 100)
        self.assertEqual(c.models(), again)
        self.assertEqual(sent, [(200, "/v1/models"), (304, "/v1/models"), (304, "/v1/models")])
        c._tagged["/v1/models"] = ('W/"other"', b"{}")  # as if the models had changed
        self.assertEqual(c.models(), again)
        c.measurements()
        self.assertEqual([s for s, _ in sent[3:]], [200, 200])
        self.assertEqual(sorted(c._tagged), ["/v1/models"])
        self.assertEqual(self.client(token="read").models(), again)

    def test_measurements(self):
        c = self.client()
        stored = c.put_measurements([measurement(n) for n in range(1, 8)])
        self.assertEqual((stored["added"], stored.get("replayed")), (7, None))
        rows = list(c.rows(model=["llama3-8b"], accelerator="h100", source="ours", outcome=("ok", "oom"), page=3))
        self.assertEqual(sorted(round(r["measurement"]["step_sec"][0] / 1.9) for r in rows), [1, 2, 3, 4, 5, 6, 7])
        self.assertEqual(c.measurements()["measurements"][0]["source"], "ours")
        self.assertEqual(c.sources()["groups"][0]["source"], "ours")
        self.assertEqual(c.nearest(**LLAMA, plan=PLAN, top=2)["rows"][0]["source"], "ours")
        self.assertEqual((c.verify_store()["ok"], c.compact_store()["rows"]), (True, 7))
        following = c.calibrate_next(**LLAMA, devices=8, points=2)
        self.assertEqual((len(following["plans"]), following["rows"] > 0), (2, True))
        self.assertEqual(len(c.fit(rows=0)["cards"]), 1)
        self.assertEqual(c.cards()["cards"][0]["n_all"], 7)

        config = rows[0]["measurement"]["config"]
        self.assertGreater(c.oracle_predict(config=config)["throughput"], 0)
        request = {"model": config["model"], "accelerator": config["accelerator"], "link": config["link"],
                   "per_node": 8, "devices": 8, "global_batch": 8}
        best = c.oracle_best(request=request)
        self.assertEqual(c.oracle_rank(request={**request, "top": 2})["choices"][0], best)
        self.assertEqual(len(c.oracle_curve(request=request)["points"]), 8)

        progress = {"name": "sweep", "label": "a", "machine": "node1", "done": 2, "wanted": 5, "failed": 0,
                    "in_doubt": 0, "out_of_memory": 0, "device_hours": 0.5, "left_s": 60.0, "last": "", "next": "",
                    "stopped": "", "updated": "2026-01-01T00:00:00Z"}
        self.assertEqual(c.post_campaign(**progress)["wanted"], 5)
        self.assertEqual(c.campaigns()["campaigns"][0]["done"], 2)

        with tempfile.TemporaryDirectory() as directory:
            for file, magic, write in (("backup", b"", c.backup), ("rows.arrow", b"ARROW1", c.export),
                                       ("rows.parquet", b"PAR1", lambda f: c.export(f, "parquet", source="ours"))):
                path = os.path.join(directory, file)
                write(path)
                content = pathlib.Path(path).read_bytes()
                self.assertGreater(len(content), 100)
                self.assertEqual(content[:len(magic)], magic)
            with self.assertRaises(Error) as refused:
                c.export(path, "csv")
            self.assertEqual(refused.exception.status, 422)
            self.assertEqual(pathlib.Path(path).read_bytes(), content)  # as before
            self.assertEqual(sorted(os.listdir(directory)), ["backup", "rows.arrow", "rows.parquet"])
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            with self.assertRaises(ImportError):
                c.table()
        else:
            self.assertEqual(c.table(source="ours").num_rows, 7)

        self.assertEqual(c.delete_measurements("ours", dry_run=True)["rows"], 7)
        self.assertEqual(c.delete_measurements("ours", reason="a test")["rows"], 7)
        self.assertEqual(list(c.rows()), [])

    def test_simulations(self):
        c = self.client()
        request = {"workload": "jobs=5,models=opt-1.3b", "cluster": "1x8xH100", "policies": ["fifo"]}
        done = c.wait_simulation(c.simulate(**request)["id"], timeout=60)
        self.assertEqual((done["status"], done["finished"]), ("done", 5))
        self.assertIn("<html", c.simulation_report(done["id"]))
        self.assertEqual(c.simulation_charts(done["id"])["policies"], done["policies"])
        self.assertEqual(c.simulations()["simulations"][0]["id"], done["id"])
        self.assertEqual(c.delete_simulation(done["id"])["id"], done["id"])
        with self.assertRaises(Error) as unknown:
            c.wait_simulation("a/b")
        self.assertEqual(unknown.exception.status, 404)

    def test_threads_share_a_client(self):
        client, got = self.client(), []

        def ask():
            with client as c:
                got.extend(c.predict(**LLAMA, seq=n, plan=PLAN)["plans"][0]["step_time_s"] for n in range(512, 532))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual((len(got), len(set(got))), (80, 20))


class Errors(Test):
    def test_token(self):
        self.assertEqual(self.fails(401, self.client(token="").models).title, "Unauthorized")
        self.assertIn("token", self.fails(401, self.client(token="url").models).detail)  # an address is no token
        reader = self.client(token="read")
        self.assertTrue(reader.models()["models"])
        self.fails(403, reader.delete_measurements, "ours")

    def test_whitespace_around_a_token(self):
        with Client(SERVER["url"], token=SERVER["read"] + "\n") as c:
            self.assertTrue(c.cards())

    def test_problem(self):
        c = self.client()
        e = self.fails(422, c.plan, **LLAMA, devices=-1, global_batch=8, nosuch=1)
        self.assertEqual({x["location"] for x in e.errors}, {"body.devices", "body.nosuch"})
        self.assertIn("body.devices: ", str(e))
        self.assertRegex(e.request_id, "^[0-9a-f]{32}$")
        self.assertEqual(str(pickle.loads(pickle.dumps(e))), str(e))
        e = self.fails(404, c.predict, model="llama3-9b", accelerator="h100", plan="dp=1")
        self.assertEqual(e.type, "urn:pacer:problem:unknown-name")
        e = self.fails(422, c.plan, model="llama3-70b", accelerator="h100", devices=1, global_batch=1)
        self.assertTrue(e.problem["infeasible"])
        noise = random.Random(1)
        large = [measurement(1, f"{noise.getrandbits(1600):x}") for _ in range(9999)] * 6
        self.fails(413, c.put_measurements, large)
        self.assertTrue(c.healthy())

    def test_no_server(self):
        e = self.fails(0, Client("http://127.0.0.1:9", retries=0).models)
        self.assertIn("/v1/models of http://127.0.0.1:9", str(e))
        self.assertFalse(Client("http://127.0.0.1:9").ready())
        for url in ("localhost:8470", "ftp://x", "http://", "http://127.0.0.1:x"):
            with self.assertRaises(ValueError):
                Client(url)

    def test_repeated(self):
        """The first answer to each operation is lost, and the second says that the server is overloaded."""
        c = self.client("flaky")
        stored = c.put_measurements([measurement(1, "flaky")])
        self.assertEqual((stored["added"], stored["replayed"]), (1, True))
        self.assertTrue(c.predict(**LLAMA, plan=PLAN)["plans"])
        self.assertTrue(c.models()["models"])
        self.fails(0, c.simulate, workload="jobs=5,models=opt-1.3b", cluster="1x8xH100", policies=["fifo"])
        self.assertEqual(len(c.simulations()["simulations"]), 1)
        self.fails(0, c.fit, rows=0)
        self.assertEqual(len(c.cards()["cards"]), 1)
        self.fails(0, c.delete_measurements, "flaky")
        self.assertEqual(list(c.rows(source="flaky")), [])
        self.fails(429, self.client("flaky", retries=1).sources)


class Answers(Test):
    """What the client does with answers that a server or a proxy before it may give."""

    def serve(self, *answers, timeout=20.0):
        """A client of a server that gives these answers, one for each connection, and none after them."""
        listener, served = socket.create_server(("127.0.0.1", 0)), []
        listener.settimeout(20)  # where the client does not come back

        def run():
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    while not connection.recv(1 << 16).endswith(b"\r\n\r\n"):
                        pass
                    served.append(answer)
                    if answer is None:
                        connection.recv(1)  # until the client gives up
                    else:
                        connection.sendall(("HTTP/1.1 " + answer).replace("\n", "\r\n").encode())

        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(listener.close)
        self.addCleanup(lambda: (thread.join(), self.assertEqual(len(served), len(answers))))
        c = Client(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=timeout, max_wait=0.01)
        self.addCleanup(c.close)
        return c

    def test_overloaded(self):
        ok = '200 OK\nContent-Length: 13\nConnection: close\n\n{"cards": []}'
        for wait in ("0", "3600", "Thu, 01 Jan 1970 00:00:00 GMT"):
            for status in ("429 Too Many Requests", "503 Service Unavailable"):
                busy = f"{status}\nRetry-After: {wait}\nContent-Length: 0\n\n"
                self.assertEqual(self.serve(busy, busy, ok).cards(), {"cards": []})
        self.assertEqual(self.serve(ok[:-1], "", ok).cards(), {"cards": []})  # incomplete, none, complete

    def test_ended(self):
        for status in ("503 Overloaded\nRetry-After: soon", "503 Overloaded", "500 Oops\nRetry-After: 0"):
            self.fails(int(status[:3]), self.serve(f"{status}\nContent-Length: 0\n\n").cards)

    def test_of_a_proxy(self):
        page = "<html>a proxy's page</html>"
        for status, want in (("200 OK", 0), ("302 Found", 302), ("502 Bad Gateway", 502)):
            e = self.fails(want, self.serve(f"{status}\nContent-Length: {len(page)}\n\n{page}").cards)
            self.assertIn(page, str(e))

    def test_late(self):
        self.assertIn("timed out", self.fails(0, self.serve(None, timeout=0.1).cards).detail)


class Transports(Test):
    def test_connections_are_kept(self):
        c = self.client()
        for _ in range(3):
            c.cards()
            self.fails(404, c.simulation, "unknown")
        self.assertEqual(len(c._idle), 1)
        kept = c._idle[0][1].sock
        c.cards()
        self.assertIs(c._idle[0][1].sock, kept)
        process = os.fork()
        if process == 0:
            os._exit(0 if c.cards() and c._idle[0][1].sock is not kept else 1)  # a child has its own connection
        self.assertEqual(os.waitpid(process, 0)[1], 0)
        c.cards()
        self.assertIs(c._idle[0][1].sock, kept)
        c.close()
        self.assertEqual((c._idle, kept.fileno()), ([], -1))

    def test_unix(self):
        for url in ("unix:" + SERVER["socket"], "http+unix://" + SERVER["socket"].replace("/", "%2F")):
            with Client(url, token=SERVER["admin"]) as c:
                self.assertTrue(c.ready())

    def test_tls(self):
        ca, pair = SERVER["certs"] + "/ca.crt", (SERVER["certs"] + "/client.crt", SERVER["certs"] + "/client.key")
        c = self.client("tls", ca=ca, client_cert=pair)
        for _ in range(3):
            self.assertTrue(c.models()["models"])
        for bad in ({"ca": ca}, {"client_cert": pair}):
            self.fails(0, self.client("tls", **bad).models)
        with self.assertRaises(ValueError):
            self.client(ca=ca)


class Source(unittest.TestCase):
    def test_runs_on_python_3_9(self):
        for file in (pathlib.Path(__file__).parent.parent / "pacer").glob("*.py"):
            ast.parse(file.read_text(), feature_version=(3, 9))

    @unittest.skipIf(sys.version_info < (3, 11), "typing has no NotRequired")
    def test_types_have_types(self):
        types.NotRequired = typing.NotRequired  # which the module imports for type checkers alone
        kinds = [kind for kind in vars(types).values() if isinstance(kind, type) and kind.__module__ == types.__name__]
        self.assertGreater(len(kinds), 90)
        for kind in kinds:
            self.assertTrue(typing.get_type_hints(kind))


if __name__ == "__main__":
    unittest.main()
