package main

import (
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/planner"
)

// spaceFlags are the settings of --space.
func spaceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "zero", Usage: "ZeRO stages considered", DefaultText: "0+1+2+3"},
		&cli.StringFlag{Name: "recompute", Usage: "recompute modes considered", DefaultText: "none+selective+full"},
		&cli.StringFlag{Name: "offload", Usage: "offload modes considered", DefaultText: "none+optimizer+params"},
		&cli.StringFlag{Name: "schedule", Usage: "pipeline schedules considered: 1f1b gpipe zb-h1 zb-h2 zb-v", DefaultText: "1f1b, interleaved too"},
		&cli.StringFlag{Name: "precisions", Usage: "formats considered, such as bf16+fp8; the device's count", DefaultText: "the one of --precision"},
		&cli.IntFlag{Name: "max-micro-batch", Usage: "largest micro-batch in samples", DefaultText: "no bound"},
		&cli.BoolFlag{Name: "tp-across-nodes", Usage: "lets tensor parallel groups span nodes"},
	}
}

// readSpace reads spaceFlags; without any, or in a command that has none, the
// space is the default one.
func readSpace(c *cli.Context) (planner.Space, error) {
	if n := c.Int("max-micro-batch"); c.IsSet("max-micro-batch") && n < 1 {
		return nil, fail.Usagef("%s: --max-micro-batch %d is below 1", c.Command.Name, n)
	}
	s := query.Space{
		Recompute: command.List(c, "recompute"), Offload: command.List(c, "offload"), Schedule: command.List(c, "schedule"), Precisions: command.List(c, "precisions"),
		MaxMicroBatch: c.Int("max-micro-batch"), TPAcrossNodes: c.Bool("tp-across-nodes"),
	}
	for _, text := range command.List(c, "zero") {
		stage, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return nil, fail.Usagef("%s: --zero %s is not one of 0 1 2 3", c.Command.Name, text)
		}
		s.ZeRO = append(s.ZeRO, stage)
	}
	e, err := s.Enumerate(c.String("precision"))
	return e, command.ForVerb(c, err)
}
