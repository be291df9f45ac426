// Package page is the web page of pacer serve: static files that ask the HTTP API. The
// files are plain modules without a build step, request nothing from other sites, and
// need no inline script or style. Charts are those of the reports, planner/report/page.
//
// Start with page.go. In the directory assets, main.js has the question, core.js what all
// views share; answer.js, trust.js, explore.js and operate.js are the views, and the
// pipeline of a plan is drawn by timeline.js.
package page
