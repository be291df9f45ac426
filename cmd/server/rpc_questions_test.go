package server

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/server/pacerpb"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// Plan and Predict answer as HTTP does, with its errors, and Version names the server.
func TestRPCQuestions(t *testing.T) {
	s := newServer(t, Options{Version: "v1.2.3"})
	conn, _ := serveRPC(t, s)
	c := pacerpb.NewPacerClient(conn)
	if v, err := c.Version(t.Context(), &pacerpb.VersionRequest{}); err != nil || v.Version != "v1.2.3" {
		t.Errorf("%v, %v", v, err)
	}
	in := &pacerpb.PlanRequest{Model: proto.String("llama3-8b"), Accelerator: proto.String("h100"), Devices: proto.Int32(16), GlobalBatch: proto.Int32(128), Top: proto.Int32(2), Explain: proto.Bool(true)}
	got, err := c.Plan(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := post[query.Plans](t, s, "/v1/plan", `{"model":"llama3-8b","accelerator":"h100","devices":16,"global_batch":128,"top":2,"explain":true}`)
	if len(got.Plans) != 2 || len(want.Plans) != 2 || got.Plans[1].GetPlan() != want.Plans[1].Plan || got.GetFitting() != int32(want.Fitting) || got.Plans[0].GetMemGib() <= 0 || got.Plans[0].GetExplain() == nil {
		t.Errorf("%v, HTTP has %+v", got, want)
	}
	in.Devices = proto.Int32(-1)
	if _, err := c.Plan(t.Context(), in); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "validation failed") {
		t.Errorf("-1 devices: %v", err)
	}
	stream, err := c.Predict(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"llama3-8b", "nosuch", "llama3-8b"} {
		if err := stream.Send(&pacerpb.PredictRequest{Model: &model, Accelerator: proto.String("h100"), Plan: proto.String("dp=8,zero=3")}); err != nil {
			t.Fatal(err)
		}
		got, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if model == "nosuch" {
			if p := got.GetProblem(); p.GetStatus() != 404 || p.GetType() != "urn:pacer:problem:unknown-name" {
				t.Errorf("%s: %v", model, got)
			}
		} else if p := got.GetPlans(); len(p.GetPlans()) != 1 || p.Plans[0].GetStepTimeS() <= 0 {
			t.Errorf("%s: %v", model, got)
		}
	}
}

// Messages have the fields of the JSON, and no others.
func TestProtoFields(t *testing.T) {
	schemas := newServer(t, Options{}).api.OpenAPI().Components.Schemas
	messages := pacerpb.File_pacer_proto.Messages()
	compared := 0
	for i := range messages.Len() {
		m := messages.Get(i)
		s := schemas.Map()[string(m.Name())]
		if s == nil || m.Name() == "Problem" { // of the stream alone
			continue
		}
		compared++
		for name, p := range s.Properties {
			for p.Ref != "" {
				p = schemas.SchemaFromRef(p.Ref)
			}
			f := m.Fields().ByName(protoreflect.Name(name))
			if f == nil {
				t.Errorf("%s has no field %s: add it to pacer.proto with the next number, and run make proto", m.Name(), name)
			} else if kind := p.Type; (kind == huma.TypeArray) != f.IsList() || kind == huma.TypeInteger && f.Kind() != protoreflect.Int32Kind ||
				kind == huma.TypeNumber && f.Kind() != protoreflect.DoubleKind || kind == huma.TypeString && f.Kind() != protoreflect.StringKind {
				t.Errorf("%s.%s is %s, in JSON %s", m.Name(), name, f.Kind(), kind)
			}
		}
		for k := range m.Fields().Len() {
			if name := string(m.Fields().Get(k).Name()); s.Properties[name] == nil {
				t.Errorf("%s.%s is no field of the JSON", m.Name(), name)
			}
		}
	}
	if compared < 15 {
		t.Errorf("%d messages compared", compared)
	}
}

// The generated code is that of pacer.proto, whatever the release of protoc.
func TestProtoGenerated(t *testing.T) {
	for _, tool := range []string{"protoc", "protoc-gen-go", "protoc-gen-go-grpc"} {
		if _, err := exec.LookPath(tool); err != nil {
			spectest.Lacks(t, tool+" is not on PATH: apt-get install protobuf-compiler, make proto-plugins, bin/proto")
		}
	}
	dir := t.TempDir()
	cmd := exec.Command("protoc", "-I", "pacerpb", "--go_out="+dir, "--go_opt=paths=source_relative", "--go-grpc_out="+dir, "--go-grpc_opt=paths=source_relative", "pacer.proto")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"pacer.pb.go", "pacer_grpc.pb.go"} {
		var texts [2]string
		for i, path := range []string{filepath.Join("pacerpb", name), filepath.Join(dir, name)} {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, texts[i], _ = strings.Cut(string(b), "\npackage ") // behind the releases
		}
		if texts[0] != texts[1] {
			t.Errorf("%s is not up to date: run make proto", name)
		}
	}
}
