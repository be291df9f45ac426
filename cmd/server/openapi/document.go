package openapi

import (
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// Operation is a GET operation that huma does not know, since its answer is no JSON of a Go type.
type Operation struct {
	Path, ID, Tag, Summary, Doc string
	Type                        string   // of the content
	Binary                      bool     // it is no text
	Queries                     []*Query // the parameters of the query
	Errors                      []int    // besides 500
	Open                        bool     // no token is needed
}

// Query is a parameter of a query.
type Query struct {
	Name, Doc string
	Enum      []any // its values; nil = any text, several times
}

// Add describes operations in doc.
func Add(doc *huma.OpenAPI, ops ...Operation) {
	for _, op := range ops {
		text := &huma.Schema{Type: huma.TypeString}
		if op.Binary {
			text.Format = "binary"
		}
		out := &huma.Operation{Method: http.MethodGet, Path: op.Path, OperationID: op.ID, Tags: []string{op.Tag}, Summary: op.Summary, Description: op.Doc,
			Responses: map[string]*huma.Response{"200": {Description: http.StatusText(http.StatusOK), Content: map[string]*huma.MediaType{op.Type: {Schema: text}}}}}
		for _, status := range append(op.Errors, http.StatusInternalServerError) {
			out.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status)}
		}
		for _, q := range op.Queries {
			of := &huma.Schema{Type: huma.TypeString, Enum: q.Enum}
			if q.Enum == nil {
				of = &huma.Schema{Type: huma.TypeArray, Items: of}
			}
			out.Parameters = append(out.Parameters, &huma.Param{Name: q.Name, In: "query", Description: q.Doc, Explode: new(true), Schema: of})
		}
		if op.Open {
			out.Security = []map[string][]string{{}}
		}
		doc.AddOperation(out)
	}
}

// Complete describes what huma cannot know of the operations of doc. tagged are the paths of lists with an ETag, nulls the
// schemas with numbers that may be null.
func Complete(doc *huma.OpenAPI, tagged, nulls []string) {
	schemas := doc.Components.Schemas.Map()
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Delete} {
			if op != nil {
				describe(doc, op)
			}
		}
	}
	for _, path := range tagged {
		op := doc.Paths[path].Get
		tag := map[string]*huma.Param{"ETag": {Description: "The version of the list.", Schema: &huma.Schema{Type: huma.TypeString}}}
		op.Responses["200"].Headers = tag
		op.Responses["304"] = &huma.Response{Description: "The client has it: If-None-Match is its ETag.", Headers: tag}
		op.Parameters = append(op.Parameters, &huma.Param{Name: "If-None-Match", In: "header", Description: "The ETag of the list that the client has.", Schema: &huma.Schema{Type: huma.TypeString}})
	}
	for _, s := range schemas {
		for _, p := range s.Properties {
			p.Nullable = p.Nullable && p.Type != huma.TypeArray // no list is null
		}
	}
	for _, name := range nulls {
		for _, p := range schemas[name].Properties {
			p.Nullable = p.Nullable || p.Type == huma.TypeNumber
		}
	}
	delete(schemas, "ErrorModel") // describe leaves none
}

// describe gives the error responses of an operation the schema that they have, and takes out of it what is not so.
func describe(doc *huma.OpenAPI, op *huma.Operation) {
	for _, p := range op.Parameters {
		p.Schema.PatternDescription = "" // OpenAPI has none, and the problems have it by now
		p.Schema.Nullable = false
	}
	if op.RequestBody != nil {
		delete(op.RequestBody.Content, "application/octet-stream") // what reads its bytes too
	}
	for status, r := range op.Responses {
		if status >= "400" {
			r.Content = map[string]*huma.MediaType{"application/problem+json": {Schema: doc.Components.Schemas.Schema(reflect.TypeFor[problem.Problem](), true, "")}}
		}
	}
}
