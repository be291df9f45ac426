package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// queryOf returns the names of the query's parameters in a request, from the tags that huma reads.
func queryOf[I any]() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[I]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("query"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// withQuery refuses requests with other parameters than those of names: one with a typing error would select, or
// delete, more than was meant.
func withQuery(names []string, next http.HandlerFunc) http.HandlerFunc {
	want := "this operation has none"
	if len(names) > 0 {
		want = "want " + strings.Join(names, ", ")
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "" {
			next(w, r)
			return
		}
		given, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			problem.Write(w, problem.New(http.StatusUnprocessableEntity, "", "query: "+problem.Echo(err.Error())))
			return
		}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !slices.Contains(names, name) {
				problem.Write(w, badParameter(name, given.Get(name), fmt.Sprintf("unknown parameter %q: %s", problem.Echo(name), want)))
				return
			}
		}
		next(w, r)
	}
}

// badParameter is the problem with a parameter of the query.
func badParameter(name, value, why string) *problem.Problem {
	p := problem.New(http.StatusUnprocessableEntity, "", why)
	p.Errors = append(p.Errors, &huma.ErrorDetail{Location: "query." + problem.Echo(name), Message: why, Value: problem.Echo(value)})
	return p
}
