package server

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// predictAtOnce answers a prediction whose body is as it should be, without
// the checks of the API's schema: those decide about all other bodies, and say
// what is wrong with them.
func (s *Server) predictAtOnce(w http.ResponseWriter, r *http.Request, body []byte) bool {
	if ct := r.Header.Get("Content-Type"); ct != "application/json" {
		return false
	}
	var in PredictRequest
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if dec.Decode(&in) != nil || dec.InputOffset() < int64(len(body)) {
		return false
	}
	out, err := s.predict(r.Context(), &in)
	if err != nil {
		return false
	}
	b, err := json.Marshal(out)
	if err != nil {
		return false
	}
	w.Header()["Content-Type"] = jsonType
	_, _ = w.Write(b) // whoever asked may be gone
	return true
}

var jsonType = []string{"application/json"}
