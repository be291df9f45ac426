package openapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/yaml"
)

// Handlers are the paths of the forms of doc, each with its handler.
func Handlers(doc *huma.OpenAPI) map[string]http.HandlerFunc {
	out := map[string]http.HandlerFunc{}
	for version, of := range map[string]func(*huma.OpenAPI) ([]byte, error){"": (*huma.OpenAPI).MarshalJSON, "-3.0": Older} {
		text := sync.OnceValues(func() ([]byte, error) { return of(doc) })
		out["/openapi"+version+".json"] = answer("application/openapi+json", text)
		out["/openapi"+version+".yaml"] = answer("application/openapi+yaml", sync.OnceValues(func() ([]byte, error) {
			b, err := text()
			if err != nil {
				return nil, err
			}
			var out bytes.Buffer
			err = yaml.Convert(&out, bytes.NewReader(b))
			return out.Bytes(), err
		}))
	}
	return out
}

func answer(kind string, of func() ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		text, err := of()
		if err != nil {
			panic(err) // the document is made of what the program has
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(text)
	}
}

// Older is doc as OpenAPI 3.0.
func Older(doc *huma.OpenAPI) ([]byte, error) {
	text, err := doc.Downgrade()
	if err != nil {
		return nil, err
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	if license, ok := v["info"].(map[string]any)["license"].(map[string]any); ok {
		license["url"] = "https://spdx.org/licenses/" + license["identifier"].(string) + ".html"
		delete(license, "identifier")
	}
	dropNewer(v)
	return json.Marshal(v)
}

// dropNewer takes the keys out of schemas that OpenAPI 3.0 does not have: the media type of a file, and those beside a
// reference, which becomes one of allOf.
func dropNewer(v any) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"]; ok && len(v) > 1 {
			delete(v, "$ref")
			v["allOf"] = []any{map[string]any{"$ref": ref}}
		}
		delete(v, "contentMediaType")
		for _, of := range v {
			dropNewer(of)
		}
	case []any:
		for _, of := range v {
			dropNewer(of)
		}
	}
}
