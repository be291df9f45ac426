package main

import "fmt"

// Parts of requests, legal in every combination: the heads of every model are
// multiples of 8, its layers of 4.
var (
	models       = []string{"llama3-8b", "llama2-7b", "llama2-13b", "llama3-70b", "mistral-7b", "gpt3-175b"}
	accelerators = []string{"h100", "a100", "h200", "a100-40gb"}
	degrees      = []string{
		"dp=8,zero=3", "dp=16,zero=2,recompute=full", "dp=8,tp=2,zero=1", "dp=4,tp=4,zero=1,recompute=selective", "dp=2,tp=8",
		"dp=4,tp=2,pp=4,ga=8", "dp=2,tp=4,pp=4,ga=16,recompute=full", "dp=32,zero=3,recompute=full", "dp=8,tp=8,zero=1", "dp=4,tp=8,pp=4,ga=16",
	}
	microBatches = []int{1, 2, 4}
)

// newRequests returns n distinct requests for predictions: the combinations above,
// then the same at further sequence lengths.
func newRequests(host string, n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		k := i
		next := func(m int) int { j := k % m; k /= m; return j }
		body := fmt.Sprintf(`{"model":%q,"accelerator":%q,"plan":"%s,mb=%d","seq":%d}`,
			models[next(len(models))], accelerators[next(len(accelerators))], degrees[next(len(degrees))], microBatches[next(len(microBatches))], 1024+64*k)
		out[i] = fmt.Appendf(nil, "POST /v1/predict HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", host, len(body), body)
	}
	return out
}
