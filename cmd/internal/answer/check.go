package answer

import (
	"context"
	"errors"
	"fmt"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/planner"
)

// CheckRequest asks about a launch file. What the request has replaces what the file says.
type CheckRequest struct {
	query.Request
	Described
	Model       string            `json:"model,omitempty" maxLength:"256" doc:"Model to train; that of the file if absent."`
	Accelerator string            `json:"accelerator,omitempty" maxLength:"256" doc:"Type of device. Most formats do not hold it."`
	File        string            `json:"file" minLength:"1" maxLength:"256" example:"job.toml" doc:"Name of the file. Its end tells YAML, TOML, JSON and shell scripts apart."`
	Text        string            `json:"text" maxLength:"81920" example:"[parallelism]\ntensor_parallel_degree = 2" doc:"The file itself. Nothing of it is run."`
	Format      string            `json:"format,omitempty" maxLength:"32" example:"megatron" doc:"Format of the file, by a name of pacer check; found by its keys if absent."`
	Set         map[string]string `json:"set,omitempty" doc:"Shell variables, and fields of the file, by name."`
	Devices     int               `json:"devices,omitempty" minimum:"1" maximum:"1048576" doc:"Number of devices; that of the file if absent."`
	Measured    float64           `json:"measured_s,omitempty" exclusiveMinimum:"0" maximum:"1e9" doc:"Compare with a step that took so many seconds."`
	To          string            `json:"to,omitempty" maxLength:"256" example:"b200" doc:"Port the recipe to this type of device."`
	Tokens      float64           `json:"tokens,omitempty" exclusiveMinimum:"0" maximum:"1e18" doc:"Tokens to train on; those of the file if absent."`
	Price       float64           `json:"price,omitempty" exclusiveMinimum:"0" maximum:"1e9" doc:"Price of a device-hour, in any currency."`
}

// Bounds of a CheckRequest.
const (
	maxLaunchFile = 80 << 10 // bytes; a refused file of that size takes at most 0.2 s of a core
	maxSet        = 256      // variables
)

// Check answers like pacer check. What neither the file nor the request says is missing in the answer, which then has
// no plan; a plan that is illegal or that no device holds is a problem of the answer.
func (c *Answerer) Check(ctx context.Context, in *CheckRequest) (query.Check, error) {
	switch {
	case len(in.Text) > maxLaunchFile:
		return query.Check{}, &query.FieldError{Field: "text", Value: "", Why: fmt.Sprintf("has %d bytes, more than the %d of a launch file", len(in.Text), maxLaunchFile)}
	case len(in.Set) > maxSet:
		return query.Check{}, &query.FieldError{Field: "set", Value: "", Why: fmt.Sprintf("has %d names, more than %d", len(in.Set), maxSet)}
	case in.File == "":
		return query.Check{}, &query.FieldError{Field: "file", Value: "", Why: "is missing: what is the file called?"}
	}
	in.Request.Model, in.Request.Accelerator = in.Model, in.Accelerator
	in.Into(&in.Request)
	out, err := c.resolver.CheckFile(ctx, query.CheckRequest{Request: in.Request, File: in.File, Text: []byte(in.Text), Format: in.Format, Set: in.Set,
		Devices: in.Devices, Measured: in.Measured, To: in.To, Tokens: in.Tokens, Price: in.Price})
	switch {
	case out == nil:
		return query.Check{}, err
	case errors.Is(err, planner.ErrInfeasible):
		out.Problems = append(out.Problems, err.Error())
	case err != nil && out.Missing == nil:
		return query.Check{}, err
	}
	return *out, nil
}
