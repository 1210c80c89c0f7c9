// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hooktest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/sources/manifest"
)

// Runner runs tests.
type Runner struct {
	Hooks *catalog.Catalog
	Codec *codec.Codec // of Hooks
	// Call calls the chain or the rule of a test. The text of its error is what callers see; an *Excluded is one of them.
	Call func(ctx context.Context, h *catalog.Hook, given *Given, request proto.Message) (proto.Message, error)
	// Read returns the content of a file of a request as JSON.
	Read func(path string) ([]byte, error)
}

// Excluded is the error of a call of a rule that is not for the request.
type Excluded struct{ Reason string }

func (e *Excluded) Error() string { return e.Reason }

// Result is the outcome of a case.
type Result struct {
	Place      manifest.Place
	Test, Case string
	// Problems say what differs from what is wanted. Without any, the case has passed.
	Problems []string
	Took     time.Duration
}

// Run runs the cases of a test, whose hook is h, one after the other, until ctx is done.
func (r *Runner) Run(ctx context.Context, h *catalog.Hook, t *Test) []Result {
	results := make([]Result, 0, len(t.Spec.Cases))
	for i := range t.Spec.Cases {
		c := &t.Spec.Cases[i]
		began := time.Now()
		problems := r.run(ctx, h, c)
		results = append(results, Result{
			Place: t.at(fmt.Sprintf("spec.cases[%d]", i)), Test: t.Name, Case: c.Name, Problems: problems,
			Took: time.Since(began),
		})
	}
	return results
}

// run runs a case, and returns its problems.
func (r *Runner) run(ctx context.Context, h *catalog.Hook, c *Case) []string {
	request, err := r.decoded(h, &c.Given)
	if err != nil {
		return []string{err.Error()}
	}
	answer, err := r.Call(ctx, h, &c.Given, request)
	excluded, failed := "", ""
	if e, ok := errors.AsType[*Excluded](err); ok {
		excluded = e.Reason
	} else if err != nil {
		failed = err.Error()
	}
	switch want := &c.Want; {
	case want.Excluded && err != nil && excluded == "":
		return []string{"error: " + failed, "the request should be excluded"}
	case want.Excluded && err == nil:
		return []string{"it is not excluded"}
	case want.Excluded:
		return nil
	case excluded != "":
		return []string{"it is excluded: " + excluded}
	case failed != want.Error && want.Error == "":
		return []string{"error: " + failed}
	case failed != want.Error && failed == "":
		return []string{"there is no error", "want error: " + want.Error}
	case failed != want.Error:
		return []string{"error: " + failed, "want error: " + want.Error}
	case failed != "":
		return nil
	}
	problems := r.response(c, answer)
	if _, failed := catalog.FailureOf(answer); failed {
		return problems
	}
	return append(problems, objects(c, request, answer)...)
}

// objects compares the objects that the answer makes of those of the request.
func objects(c *Case, request, answer proto.Message) []string {
	if len(c.Want.Objects) == 0 {
		return nil
	}
	after, err := handlerchain.After(request, answer, jsonpatch.Guard{})
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	for _, want := range c.Want.Objects {
		name := "object " + want.Name + want.UID
		i := slices.IndexFunc(after, func(o handlerchain.Object) bool {
			return want.UID != "" && o.UID == want.UID || want.Name != "" && o.Name == want.Name && o.UID == ""
		})
		if i < 0 {
			problems = append(problems, name+": the request has no such object")
			continue
		}
		problems = append(problems, compared(name, after[i].JSON, want.Object)...)
	}
	return problems
}

// response compares members of the answer.
func (r *Runner) response(c *Case, answer proto.Message) []string {
	body, err := r.Codec.Append(nil, answer)
	if err != nil {
		return []string{err.Error()}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return []string{err.Error()}
	}
	var common struct {
		Status            string `json:"status"`
		Message           string `json:"message"`
		RetryAfterSeconds int32  `json:"retryAfterSeconds"`
	}
	if err := json.Unmarshal(body, &common); err != nil {
		return []string{err.Error()}
	}
	var problems []string
	differs := func(name string, got, want any) {
		if got != want {
			problems = append(problems, fmt.Sprintf("%s: got %v, want %v", name, got, want))
		}
	}
	differs("status", common.Status, cmp.Or(c.Want.Status, "Success"))
	differs("message", quoted(common.Message), quoted(c.Want.Message))
	differs("retryAfterSeconds", common.RetryAfterSeconds, c.Want.RetryAfterSeconds)
	for _, name := range slices.Sorted(maps.Keys(c.Want.Response)) {
		got, ok := members[name]
		if !ok {
			problems = append(problems, "the answer has no "+name)
			continue
		}
		problems = append(problems, compared(name, got, c.Want.Response[name])...)
	}
	return problems
}

// compared returns what differs between two values of that name.
func compared(name string, got, want []byte) []string {
	found, err := handlerchain.Differences(got, want)
	if err != nil {
		return []string{name + ": " + err.Error()}
	}
	problems := make([]string, 0, len(found))
	for _, d := range found {
		at := strings.TrimSuffix(name+" "+text.Cut(d.Pointer, limits.QuotedBytes), " ")
		problems = append(problems, fmt.Sprintf("%s: got %s, want %s", at, shown(d.Got), shown(d.Want)))
	}
	return problems
}

// shown returns a value for a message.
func shown(value string) string {
	if value == "" {
		return "nothing"
	}
	return text.Cut(value, limits.QuotedBytes)
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }
