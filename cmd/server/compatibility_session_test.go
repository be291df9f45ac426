package server

import "net/http"

// session returns what a recording of a release asks, in order, beginning with an empty store. Figures of
// predictions are no part of the contract: they change as performance models get better.
func session() []exchange {
	const (
		cluster = `"model":"llama3-8b","accelerator":"h100"`
		config  = `{"config":{` + cluster + `,"plan":"`
		ours    = `","shape":"8"},"outcome":"ok","source":"ours","step_sec":[`
		row     = config + `dp=8,ga=4,zero=3,recompute=full` + ours + `7.6]}`
		plan    = `"plan":"dp=8,mb=2,ga=8,zero=3,recompute=full"`
		figures = `"model":{"name":"mine","kind":"decoder","layers":24,"hidden":2048,"heads":16,"ffn":8192,"vocab":50257,"seq_len":2048},` +
			`"accelerator":{"name":"a100","fp16_flops":312e12,"bf16_flops":312e12,"fp32_flops":19.5e12,"mem_bytes":85899345920,"mem_bps":2e12,"scale_up_bps":3e11,"host_bps":32e9},` +
			`"link":{"intra_bps":3e11,"inter_bps":25e9,"host_bps":32e9}`
		question = `{"request":{` + figures + `,"devices":8,"per_node":8,"global_batch":64,"precision":"bf16","top":2}}`
		measured = `{"measurements":[` + row + `,` +
			config + `dp=8,ga=8,zero=3,recompute=full` + ours + `15.1,15.0,15.2]},` +
			config + `dp=8,ga=16,zero=3,recompute=full` + ours + `30]},` +
			config + `dp=4,tp=2,ga=16,zero=1,recompute=full` + ours + `17.1]},` +
			config + `dp=16,ga=8,zero=3,recompute=full","shape":"8+8"},"outcome":"ok","source":"ours","step_sec":[15.6]},` +
			config + `dp=8,mb=4,ga=4","shape":"8"},"outcome":"oom","source":"theirs"}]}`
	)
	get := func(path string, exact ...string) exchange {
		return exchange{Method: http.MethodGet, Path: path, Exact: exact}
	}
	post := func(path, body string, exact ...string) exchange {
		return exchange{Method: http.MethodPost, Path: path, Body: body, Exact: exact}
	}
	with := func(e exchange, headers ...string) exchange {
		e.Headers = headers
		return e
	}
	named := []string{"plans[].plan", "plans[].fits", "plans[].by"}
	of := func(e exchange) exchange { // a problem: type, title and the fields at fault
		e.Exact = []string{"type", "title", "status", "errors[].location"}
		return e
	}
	guarded := of(get("/v1/models"))
	guarded.Guarded = true
	simulated := get("/v1/simulations/{id}", "id", "status", "jobs", "finished", "policies", "runs[].policy")
	simulated.Ended = true
	return []exchange{
		get("/healthz"), get("/readyz"), get("/metrics"), get("/openapi.json"),
		get("/v1/models", "models[].name", "models[].kind"),
		with(get("/v1/models"), "If-None-Match", "{etag}"),
		get("/v1/accelerators", "accelerators[].name"),
		get("/v1/frameworks", "frameworks[].name"), get("/v1/version", "contract"),
		get("/v1/cards", "*"), get("/v1/measurements", "*"), get("/v1/sources", "*"),

		post("/v1/predict", `{`+cluster+`,`+plan+`}`, named...),
		post("/v1/predict", `{`+cluster+`,`+plan+`,"explain":true,"emit":"megatron"}`, named...),
		post("/v1/predict/batch", `{"questions":[{`+cluster+`,`+plan+`},{"model":"nosuch","accelerator":"h100",`+plan+`}]}`, "rows[].problem.type", "rows[].problem.status", "rows[].plan.plan"),
		post("/v1/plan", `{`+cluster+`,"devices":16,"global_batch":128,"top":3}`, "plans[].fits", "plans[].by"),
		post("/v1/curve", `{`+cluster+`,"max_devices":16,"global_batch":128}`, "points[].devices"),
		post("/v1/recommend", `{"model":"llama3-8b","tokens":1e9,"global_batch":128,"have":"h100:16@2"}`),
		post("/v1/fit-check", `{`+cluster+`,`+plan+`}`, "fits", "plan"),
		post("/v1/check", `{"file":"train.sh","text":"torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 64 --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8 --seq-length 4096 --swiglu --bf16",`+cluster+`}`),
		post("/v1/network", `{"config":{"model_type":"llama","architectures":["LlamaForCausalLM"],"num_hidden_layers":16,"hidden_size":2048,"intermediate_size":8192,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,"max_position_embeddings":4096}}`, "network.layers", "network.hidden", "network.heads"),
		post("/v1/oracle/predict", `{"config":{`+figures+`,"seq_len":2048,"plan":{"dp":8,"tp":1,"pp":1,"mb":1,"ga":8,"zero":1,"precision":"bf16"},"shape":{"devices":"8"}}}`),
		post("/v1/oracle/best", question), post("/v1/oracle/rank", question), post("/v1/oracle/curve", question),

		with(post("/v1/measurements", measured, "*"), "Idempotency-Key", "first"),
		with(post("/v1/measurements", measured, "*"), "Idempotency-Key", "first"),
		of(with(post("/v1/measurements", `{"measurements":[`+row+`]}`), "Idempotency-Key", "first")),
		post("/v1/measurements", `{"measurements":[`+row+`]}`, "*"),
		get("/v1/measurements", "*"),
		get("/v1/measurements/rows?limit=2", "rows[].measurement.step_sec", "rows[].measurement.source", "rows[].measurement.outcome"),
		get("/v1/measurements/rows?limit=2&cursor={next}", "rows[].measurement.step_sec", "rows[].measurement.source"),
		get("/v1/measurements/rows?source=theirs&outcome=oom&model=llama3-8b&accelerator=h100", "rows[].measurement.source", "rows[].measurement.outcome"),
		get("/v1/measurements/export"), get("/v1/measurements/export?format=parquet&source=ours"), get("/v1/backup"),
		get("/v1/sources", "groups[].source"),
		post("/v1/nearest", `{`+cluster+`,`+plan+`,"top":2}`, "compared", "rows[].source"),
		post("/v1/calibrate-next", `{`+cluster+`,"devices":8,"points":2}`, "rows", "plans[].model", "plans[].accelerator"),
		post("/v1/store/verify", `{}`, "ok", "rows", "faults"), post("/v1/store/compact", `{}`, "rows"),
		post("/v1/fit", `{"rows":0}`, "skipped"),
		get("/v1/cards"), post("/v1/predict", `{`+cluster+`,`+plan+`}`, "plans[].plan", "plans[].fits"),
		{Method: http.MethodDelete, Path: "/v1/measurements?source=ours&dry_run=true&reason=test", Exact: []string{"*"}},
		{Method: http.MethodDelete, Path: "/v1/measurements?source=ours&reason=test", Exact: []string{"*"}},
		post("/v1/measurements", `{"measurements":[`+row+`]}`, "*"),

		post("/v1/campaigns", `{"name":"lab","label":"a","machine":"8xH100","done":3,"wanted":9,"out_of_memory":1,"failed":0,"in_doubt":0,"device_hours":1.5,"left_s":60,"stopped":"","updated":"2026-01-01T00:00:00Z","next":"dp=8","last":"dp=4 ok"}`, "name", "label", "machine", "done", "wanted", "last"),
		get("/v1/campaigns", "campaigns[].name", "campaigns[].done"),
		post("/v1/simulations", `{"workload":"jobs=8,per-hour=40,models=llama3-8b+opt-1.3b","cluster":"1x8xH100","policies":["fifo"],"truth":"fitted:analytic","seed":3}`, "id", "jobs", "policies"),
		simulated, get("/v1/simulations", "simulations[].id", "simulations[].status"),
		get("/v1/simulations/{id}/report"), get("/v1/simulations/{id}/charts"),
		{Method: http.MethodDelete, Path: "/v1/simulations/{id}", Exact: []string{"id"}},

		of(get("/v1/simulations/{id}")), of(get("/v1/nosuch")), of(post("/v1/models", `{}`)),
		of(post("/v1/predict", `{"model":`)), of(post("/v1/predict", `{"model":"llama3-8b","accelerator":"h100",`+plan+`,"nosuch":1}`)),
		of(post("/v1/predict", `{"model":"llama3-8","accelerator":"h100",`+plan+`}`)),
		of(post("/v1/plan", `{"model":"llama3-70b","accelerator":"h100","devices":2,"global_batch":1}`)),
		of(post("/v1/plan", `{`+cluster+`,"devices":0,"global_batch":8}`)),
		of(with(post("/v1/plan", `devices=8`), "Content-Type", "text/plain")),
		of(get("/v1/measurements/rows?nosuch=1")), of(get("/v1/measurements/rows?cursor=x")),
		of(post("/v1/measurements", `{"measurements":[{}]}`)),
		{Method: http.MethodDelete, Path: "/v1/measurements?source=nosuch", Exact: []string{"title"}},
		of(with(get("/v1/models"), "Sec-Fetch-Site", "cross-site")), guarded,
	}
}
