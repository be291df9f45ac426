package page_test

import (
	"testing"

	"github.com/pacer-ml/pacer/cmd/server"
)

// TestBrowserCampaigns: view Operate follows a campaign without being loaded again.
func TestBrowserCampaigns(t *testing.T) {
	b := open(t, server.Options{})
	b.load("/?view=operate")
	b.wait(`document.querySelector("#h-campaigns") === null`)
	const state = `{"name":"<b>mine</b>","label":"2","machine":"2 x H100","wanted":40,"failed":0,"in_doubt":1,"device_hours":0.1,"updated":"2026-01-01T00:00:00Z","last":"gpt dp=2 ok 0.1 s",`
	post(t, b.site+"/v1/campaigns", state+`"done":7,"out_of_memory":1,"left_s":600,"next":"gpt dp=4,mb=8","stopped":""}`)
	b.wait(`document.querySelector("#view progress")?.value === 7`)
	b.wait(`document.querySelector("#view .block").textContent.includes("<b>mine</b> #2 on 2 x H100: 7 of 40 points, 1 out of memory, 1 in doubt. About 10.0 min to go.")`)
	b.accessible()
	post(t, b.site+"/v1/campaigns", state+`"done":40,"out_of_memory":1,"left_s":0,"next":"","stopped":"budget spent: 40 points"}`)
	b.wait(`document.querySelector("#view progress").value === 40 && document.querySelector("#view .block").textContent.includes("Ended: budget spent: 40 points.")`)
	b.clean()
}
