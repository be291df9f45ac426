package main

import (
	"regexp"
	"strings"
)

// A rule bans what matches and says what to write.
type rule struct {
	match *regexp.Regexp
	say   string
}

// people may be called who: "users who", "anyone who".
const people = `people|persons?|users?|readers?|authors?|someone|anyone|everyone|operators?|reviewers?|maintainers?|contributors?|colleagues?|newcomers?|engineers?|reporters?|administrators?|teams?|those of you`

var whoOfPeople = regexp.MustCompile(`(?i)\b(?:` + people + `),?\s+who(?:se|m)?$`)

// phrases are banned in prose: "a|b" bans either, a blank is any white space.
var phrases = []struct{ banned, say string }{
	{`who|whom`, "jobs, devices and rows are it and they: name the thing, or use that"},
	{`whose`, "with, of its, or a second sentence"},
	{`nobody|somebody|everybody|anybody`, "no job, a job, all jobs: name the thing"},
	{`in vain|barren`, "without effect, idle, non-improving"},
	{`of which`, "two sentences, or: N, M of them"},
	{`knows? nothing of|know nothing of|says? nothing of|nothing is known of|nothing is told of`, "has no X, X is unknown"},
	{`(?:is|are|was|were|be|been|being) asked`, "takes, queries, requests, --flag asks for it: name the request"},
	{`(?:is|are|was|were|be|been|being) told`, "receives, reads, is given"},
	{`tells? (?:how|what|which|whether|when|where|the)`, "predicts, reports, prints, states"},
	{`teach|teaches|taught`, "trains, adds information, improves the fit"},
	{`(?:is|are|was|were) believed of|believed of`, "is the estimate for"},
	{`what there is|all there is|as many as there are|there is none like`, "the available X"},
	{`what came|those inside|those outside`, "arrivals, jobs in the system, held jobs"},
	{`when its turn comes|in turn comes|has its turn`, "when it is next in the queue"},
	{`makes? way|made way|making way`, "is preempted, yields its devices"},
	{`in truth`, "in fact, in the ground truth, actually"},
	{`as far as was|as far as it goes|nothing that can be told`, "state what was measured"},
	{`has a right to|had a right to|have a right to`, "is entitled to, is owed"},
	{`to be had`, "available"},
	{`a question of its own|questions of their own`, "conflicts with, is a separate command"},
	{`forgives?`, "tolerates"},
	{`beside (?:none|nobody|whom)`, "without a colocated job"},
	{`to those who|of those who|to him|for him`, "name the jobs"},
	{`many a|century`, "state the number"},
	{`turnTo|wholefile|rightful|itinerar(?:y|ies)|lore|roster|tellers?|stubborn`, "see the field's term"},
}

// names are banned as words of declared names.
var names = map[string]string{
	"who": "name the thing", "whom": "name the thing", "whose": "name the thing", "nobody": "none", "somebody": "any", "everybody": "all",
	"roster": "queue", "lore": "history", "itinerary": "job", "desk": "resolver", "teller": "explainer", "tellers": "explainers",
	"vain": "idle", "barren": "idle", "stubborn": "sticky", "gist": "normalized", "knob": "group", "knobs": "groups",
	"rightful": "deficit", "outlook": "decision", "prospect": "job", "sighting": "observation", "sightings": "observations",
	"menu": "candidates", "menus": "candidates", "wholefile": "atomic file", "companion": "colocated", "dues": "deadlines",
	"itineraries": "jobs", "wildness": "noise",
}

var rules = compileRules()

func compileRules() []rule {
	var out []rule
	for _, p := range phrases {
		pattern := `(?i)\b(?:` + strings.ReplaceAll(p.banned, " ", `\s+`) + `)\b`
		out = append(out, rule{regexp.MustCompile(pattern), p.say})
	}
	return out
}

// findIn returns the findings in a text that begins at a line of a file.
func findIn(t text) []finding {
	var out []finding
	for _, r := range rules {
		for _, at := range r.match.FindAllStringIndex(t.words, -1) {
			if whoOfPeople.MatchString(t.words[:at[1]]) {
				continue
			}
			out = append(out, finding{t.file, t.line + strings.Count(t.words[:at[0]], "\n"),
				strings.Join(strings.Fields(t.words[at[0]:at[1]]), " "), r.say})
		}
	}
	return out
}

// findInName returns the finding in a declared name.
func findInName(t text) []finding {
	for _, word := range camelWord.FindAllString(t.words, -1) {
		if say, ok := names[strings.ToLower(word)]; ok {
			return []finding{{t.file, t.line, "name " + t.words, say}}
		}
	}
	return nil
}

var camelWord = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)
