// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package chaintest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/codec"
	"github.com/hookgate/hookgate/internal/handlerchain"
	"github.com/hookgate/hookgate/internal/jsonpatch"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/text"
)

// Runner runs tests.
type Runner struct {
	Hooks *catalog.Catalog
	Codec *codec.Codec // of Hooks
	// Call calls a chain. The text of its error is what callers see.
	Call func(ctx context.Context, h *catalog.Hook, chain string, request proto.Message) (proto.Message, error)
	// Read returns the content of a file of a request as JSON.
	Read func(path string) ([]byte, error)
}

// Result is the outcome of a case.
type Result struct {
	Test, Case string
	// Problems say what differs from what is wanted. Without any, the case has passed.
	Problems []string
	Took     time.Duration
}

// Run runs the cases of a test, one after the other, until ctx is done.
func (r *Runner) Run(ctx context.Context, t *Test) []Result {
	h, _ := r.Hooks.ByName(t.Spec.Hook) // Parse has found it
	results := make([]Result, 0, len(t.Spec.Cases))
	for i := range t.Spec.Cases {
		c := &t.Spec.Cases[i]
		began := time.Now()
		problems := r.run(ctx, h, t.Spec.Chain, c)
		results = append(results, Result{Test: t.Name, Case: c.Name, Problems: problems, Took: time.Since(began)})
	}
	return results
}

// run runs a case, and returns its problems.
func (r *Runner) run(ctx context.Context, h *catalog.Hook, chain string, c *Case) []string {
	body := []byte(c.Request)
	if c.RequestFile != "" {
		var err error
		if body, err = r.Read(c.RequestFile); err != nil {
			return []string{err.Error()}
		}
	}
	request := h.Request.New().Interface()
	if err := r.Codec.Decode(body, request); err != nil {
		return []string{fmt.Sprintf("the request is no %s: %s", request.ProtoReflect().Descriptor().Name(), err)}
	}
	answer, err := r.Call(ctx, h, chain, request)
	failure := ""
	if err != nil {
		failure = err.Error()
	} else if message, failed := catalog.FailureOf(answer); failed {
		failure = message
	}
	switch {
	case failure != c.Want.Failure && c.Want.Failure == "":
		return []string{"it fails: " + failure}
	case failure != c.Want.Failure && failure == "":
		return []string{"it succeeds, want the failure " + quoted(c.Want.Failure)}
	case failure != c.Want.Failure:
		return []string{"it fails: " + failure, "want the failure " + quoted(c.Want.Failure)}
	case failure != "":
		return nil
	}
	return append(objects(c, request, answer), r.response(c, answer)...)
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
	if len(c.Want.Response) == 0 {
		return nil
	}
	body, err := r.Codec.Append(nil, answer)
	if err != nil {
		return []string{err.Error()}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return []string{err.Error()}
	}
	var problems []string
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
