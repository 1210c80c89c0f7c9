// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/internal/base/table"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
	"github.com/hookgate/hookgate/internal/contract/printers"
)

// explanationWidth is the number of columns that the texts of an explanation take.
const explanationWidth = 80

// explanationTable writes explanations of calls of a hook for people.
type explanationTable struct {
	w     io.Writer
	hook  *catalog.Hook
	codec *codec.Codec
}

// row is a handler of an explanation, or a step.
type row struct {
	*gateway.ExplainedHandler
	turn string // such as 2, or 2.1 for a step
}

// write writes an explanation: the handlers that are called, then the others with their reasons, and then the answers.
func (t *explanationTable) write(x *gateway.Explanation) error {
	head := table.New(t.w)
	head.Row("HOOK", x.Hook)
	head.Row("HANDLER", printers.Called(t.hook, x.Handler))
	if x.Cluster != "" {
		head.Row("CLUSTER", x.Cluster)
	}
	if err := head.Flush(); err != nil {
		return err
	}
	if x.Failure != nil {
		t.section("THE CALL FAILS", x.Failure.Kind, x.Failure.Message)
	}
	var called, others []row
	for i := range x.Handlers {
		h := &x.Handlers[i]
		add := func(h *gateway.ExplainedHandler, turn string) {
			switch {
			case h.Excluded == nil:
				called = append(called, row{h, turn})
			case h.Excluded.By != "chain": // which has it as a step
				others = append(others, row{h, turn})
			}
		}
		add(h, strconv.Itoa(h.Turn))
		for j := range h.Steps {
			add(&h.Steps[j], fmt.Sprintf("%d.%d", h.Turn, h.Steps[j].Turn))
		}
	}
	if err := t.called(called); err != nil {
		return err
	}
	for _, r := range called {
		if r.Audits {
			t.section("ONLY AUDITS", r.Name, "the caller gets an answer as if nothing applied")
		}
		if r.LiftedBy != "" {
			t.section("HOLD IS LIFTED", r.Name, fmt.Sprintf("if the handler holds the Cluster, liftedHolds of "+
				"ExtensionPolicy %q lifts the hold", r.LiftedBy))
		}
		if r.OnHold != "" {
			t.section("STOPS WHILE IT HOLDS", r.Name, "the steps after it are not called until it lets the Cluster go on")
		}
		if r.OnHold != "" {
			t.section("STOPS WHILE IT HOLDS", r.Name, "the steps after it are not called until it lets the Cluster go on")
		}
		if r.Messages != "" {
			t.section("MASKED", r.Name,
				"messages: "+r.Messages+" masks times, durations and identifiers in the handler's message")
		}
		if r.Fails != "" {
			t.section("FAILS AT ONCE", r.Name, r.Fails)
		}
	}
	t.others(x, others)
	return t.answers(x)
}

// called writes a row for each handler that is called. Columns that say the same of all are left out.
func (t *explanationTable) called(rows []row) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(t.w, "\nNo handler is called.")
		return err
	}
	some := func(f func(r row) bool) bool { return slices.ContainsFunc(rows, f) }
	versions := some(func(r row) bool { return r.HookVersion != "" && r.HookVersion != t.hook.Version })
	objects := some(func(r row) bool { return r.ClusterAPIVersion+r.ClusterAPIRelease != "" })
	caches := some(func(r row) bool { return r.CacheSeconds > 0 })
	members := some(func(r row) bool { return r.Member != "" })
	w := table.New(t.w)
	columns := func(cells []string, member, version, object, cache string) []string {
		if members {
			cells = append(cells, member)
		}
		if versions {
			cells = append(cells, version)
		}
		if objects {
			cells = append(cells, object)
		}
		if caches {
			cells = append(cells, cache)
		}
		return cells
	}
	w.Header(columns([]string{"TURN", "HANDLER", "TIMEOUT", "FAILURE POLICY"},
		"ANSWERED BY", "VERSION", "OBJECTS", "CACHE")...)
	for _, r := range rows {
		object, cache := "as sent", ""
		if r.Kind == "HandlerChain" {
			object = ""
		}
		if r.ClusterAPIVersion != "" {
			object = r.ClusterAPIVersion
		}
		if r.ClusterAPIRelease != "" {
			object = strings.TrimPrefix(r.ClusterAPIVersion+" of "+r.ClusterAPIRelease, " ")
		}
		if r.CacheSeconds > 0 {
			cache = strconv.FormatInt(r.CacheSeconds, 10) + "s"
		}
		w.Row(columns([]string{
			r.turn, r.Name, strconv.FormatFloat(r.TimeoutSeconds, 'f', -1, 64) + "s", r.FailurePolicy,
		}, r.Member, r.HookVersion, object, cache)...)
	}
	return w.Flush()
}

// others writes the reasons of the handlers that are not called.
func (t *explanationTable) others(x *gateway.Explanation, rows []row) {
	if len(rows) > 0 {
		_, _ = fmt.Fprintln(t.w, "\nNOT CALLED")
	}
	for _, r := range rows {
		kind := r.Kind
		if kind != "" {
			kind += " "
		}
		_, _ = fmt.Fprintf(t.w, "%s%s: %s\n", kind, text.Printable(r.Name), text.Printable(r.Excluded.By))
		t.wrapped(r.Excluded.Message)
	}
	if x.NotListed > 0 {
		_, _ = fmt.Fprintf(t.w, "and %s\n", text.Plural(x.NotListed, "more handler"))
	}
}

// section writes a name, and a text about it.
func (t *explanationTable) section(title, name, about string) {
	_, _ = fmt.Fprintf(t.w, "\n%s: %s\n", title, text.Printable(name))
	t.wrapped(about)
}

// wrapped writes a text in lines that are indented.
func (t *explanationTable) wrapped(s string) {
	line := ""
	for word := range strings.FieldsSeq(text.Printable(s)) {
		if line != "" && len("  ")+len(line)+1+len(word) > explanationWidth {
			_, _ = fmt.Fprintf(t.w, "  %s\n", line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	_, _ = fmt.Fprintf(t.w, "  %s\n", line)
}

// answers writes the answers of the steps of a chain and of the call, with the objects after each.
func (t *explanationTable) answers(x *gateway.Explanation) error {
	if x.Answer == nil {
		return nil
	}
	for i := range x.Handlers {
		for _, step := range x.Handlers[i].Steps {
			if step.Answer == nil {
				continue
			}
			if err := t.answer(step.Name, step.Answer); err != nil {
				return err
			}
		}
	}
	name := x.Handler
	if len(x.Handlers) > 0 {
		name = x.Handlers[0].Name
	}
	return t.answer(name, x.Answer)
}

// object writes an object as YAML, or as JSON if it has too many values for that.
func (t *explanationTable) object(object []byte) error {
	format := cmdline.FormatYAML
	if c := jsonscan.Count(object); c.Values > cmdline.YamlValues || c.Indented > cmdline.IndentedBytes {
		format = cmdline.FormatJSON
	}
	printer, err := cmdline.NewPrinter(format)
	if err != nil {
		return err
	}
	return printer(t.w, object, nil)
}

func (t *explanationTable) answer(name string, a *gateway.ExplainedAnswer) error {
	if a.Error != nil {
		t.section("FAILED", name, a.Error.Kind+": "+a.Error.Message)
		return nil
	}
	if a.Audited != "" {
		t.section("WOULD ANSWER", name, a.Audited)
	}
	if len(a.Response) > 0 {
		_, _ = fmt.Fprintln(t.w)
		message := t.hook.Response.New().Interface()
		if err := t.codec.Decode(a.Response, message); err != nil {
			return err
		}
		if err := printers.Answer(t.w, t.hook, name, message, ""); err != nil {
			return err
		}
	}
	for _, o := range a.Objects {
		title := o.Name
		if o.UID != "" {
			title = o.UID + ", " + o.Name
		}
		_, _ = fmt.Fprintf(t.w, "\nAFTER %s: %s\n", text.Printable(name), text.Printable(title))
		if err := t.object(o.Object); err != nil {
			return err
		}
	}
	if a.LeftOut {
		_, _ = fmt.Fprintln(t.w, "\nThe answer, or its result for some objects, is too large to be shown.")
	}
	return nil
}
