// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/table"
	"github.com/hookgate/hookgate/internal/base/text"
)

// Extensions writes a row for each extension of a gateway. If wide, it has more columns.
func Extensions(w io.Writer, g *status.Gateway, wide bool) error {
	t := table.New(w)
	columns := []string{"NAME", "STATE", "SINCE", "PROTOCOL", "HANDLERS", "CALLS", "FAILED", "P99"}
	if wide {
		columns = append(columns, "P50", "IN FLIGHT", "CIRCUIT", "HEALTH CHECK", "URL")
	}
	t.Columns(append(columns, "MESSAGE")...)
	t.Optional("MESSAGE", "PROTOCOL", "P99", "HANDLERS", "CALLS", "SINCE", "FAILED")
	t.Below("NAME", "MESSAGE")
	for i := range g.Extensions {
		x := &g.Extensions[i]
		row := []string{
			x.Name, string(x.State), Age(x.Since, g.Now), x.Protocol, strconv.Itoa(len(x.Handlers)),
			strconv.FormatUint(x.Calls.Total, 10), strconv.FormatUint(x.Calls.Failures, 10), percentile(&x.Calls, x.Calls.P99),
		}
		if wide {
			row = append(row, percentile(&x.Calls, x.Calls.P50), strconv.Itoa(x.InFlight),
				x.Circuit.State, healthCheck(x), x.URL)
		}
		t.Row(append(row, Message(x))...)
	}
	return t.Flush()
}

// Notices writes what needs attention though calls are answered, below a table.
func Notices(w io.Writer, g *status.Gateway) error {
	t := table.New(w)
	if len(g.Notices) > 0 {
		t.Header("NOTICE", "MESSAGE")
	}
	for _, n := range g.Notices {
		t.Lines(n.Name, strings.Join(append([]string{n.Text}, n.Details...), "\n"))
	}
	return t.Flush()
}

// healthCheck returns "off" if the health of an extension is known to be unchecked.
func healthCheck(x *status.Extension) string {
	if x.HealthUnchecked {
		return "off"
	}
	return ""
}

// Message returns what a person should know of an extension.
func Message(x *status.Extension) string {
	var parts []string
	if x.Rollout != nil {
		parts = append(parts, memberText(x.Rollout))
	}
	if x.Error != "" {
		parts = append(parts, x.Error)
	}
	if x.Expiring != "" {
		parts = append(parts, x.Expiring)
	}
	if x.Stale && len(x.Handlers) > 0 {
		parts = append(parts, stale(x))
	}
	if x.Pending != nil {
		parts = append(parts, pending(x))
	}
	switch x.Undiscovered {
	case "Fail":
		parts = append(parts, "calls to all handlers of a hook fail until its handlers are known")
	case "Ignore":
		parts = append(parts, "it was never discovered, and calls to all handlers of a hook are answered "+
			"without it")
	}
	if unsteady := unsteadyOf(x.Handlers); unsteady != "" {
		parts = append(parts, unsteady)
	}
	if n := len(x.Withheld); n > 0 {
		parts = append(parts, fmt.Sprintf("%s not served, because the ExtensionPolicy does not allow their hooks",
			text.Plural(n, "handler")+are(n)))
	}
	return strings.Join(parts, "; ")
}

// unsteadyOf names the handlers whose messages change from call to call, or says nothing.
func unsteadyOf(handlers []status.Handler) string {
	var names []string
	for i := range handlers {
		if handlers[i].Unsteady != "" {
			names = append(names, handlers[i].Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "the messages of " + text.Join(names, ", ", limits.Problems) + " change from call to call"
}

func stale(x *status.Extension) string {
	return fmt.Sprintf("its last known %s still served", text.Plural(len(x.Handlers), "handler")+are(len(x.Handlers)))
}

// pending says where an extension is called in place of where its ExtensionConfig says, which Pending has.
func pending(x *status.Extension) string {
	p, since := x.Pending, x.Pending.Since.UTC().Format(time.RFC3339)
	if p.URL == x.URL {
		return fmt.Sprintf("called over the previous protocol %s since %s: discovery over %s has not succeeded yet",
			x.Protocol, since, p.Protocol)
	}
	return fmt.Sprintf("called at the previous URL %s since %s: discovery at %s has not succeeded yet",
		x.URL, since, p.URL)
}

func are(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

// CertificateTitle names a certificate by what it is to an extension.
func CertificateTitle(c *status.Certificate) string {
	switch c.Of {
	case "Chain":
		return "Issuer"
	case "CABundle":
		return "caBundle"
	}
	return "Certificate"
}

// CertificateText says what a certificate is to an extension, and when it ends.
func CertificateText(c *status.Certificate, now time.Time) string {
	ends, left := "expires", c.NotAfter.Sub(now)
	if left < 0 {
		ends = "expired"
	}
	s := fmt.Sprintf("%s %s %s", c.Subject, ends, c.NotAfter.UTC().Format(time.RFC3339))
	if left >= 0 {
		s += ", in " + duration.HumanDuration(left)
	}
	if c.Certificates > 1 {
		s += fmt.Sprintf("; of %d certificates, this one expires last", c.Certificates)
	}
	if len(c.Expired) > 0 {
		s += "; expired: " + text.Join(c.Expired, ", ", limits.Problems)
	}
	return s
}

// Age returns how long ago a time was; empty if it is not known.
func Age(since *time.Time, now time.Time) string {
	if since == nil {
		return ""
	}
	return duration.HumanDuration(now.Sub(*since))
}

// percentile returns a duration of calls; empty if there were none.
func percentile(c *status.Calls, s status.Seconds) string {
	if c.Total == 0 {
		return ""
	}
	return Latency(s)
}

// Latency returns a duration with two digits.
func Latency(s status.Seconds) string {
	d := s.Duration()
	switch {
	case d >= 10*time.Second:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(100 * time.Millisecond)
	case d >= 10*time.Millisecond:
		d = d.Round(time.Millisecond)
	default:
		d = d.Round(100 * time.Microsecond)
	}
	return d.String()
}

// Holds writes a row for each Cluster that waits for a handler.
func Holds(w io.Writer, g *status.Gateway) error {
	t := table.New(w)
	t.Columns("NAMESPACE", "CLUSTER", "HOOK", "HANDLER", "SINCE", "ASKED", "REASON", "MESSAGE")
	t.Optional("MESSAGE", "ASKED", "SINCE", "REASON", "HOOK")
	t.Below("CLUSTER", "HOOK", "REASON", "MESSAGE")
	for i := range g.Holds {
		h := &g.Holds[i]
		t.Row(h.Namespace, h.Cluster, h.Hook, h.Handler, Age(&h.Since, g.Now), Age(&h.Last, g.Now)+" ago",
			cmp.Or(h.Kind, "retry after "+Latency(h.RetryAfter)), h.Message)
	}
	return t.Flush()
}

// Extension describes the first extension of g, which is all that g has.
func Extension(w io.Writer, g *status.Gateway) error {
	x := &g.Extensions[0]
	t := table.New(w)
	t.Row("Name:", x.Name)
	t.Row("State:", stateOf(x, g.Now))
	if x.Error != "" {
		t.Row("Reason:", x.Error)
	}
	if x.LastSuccess != nil {
		t.Row("Last answer:", Age(x.LastSuccess, g.Now)+" ago")
	}
	t.Row("URL:", x.URL)
	t.Row("Protocol:", x.Protocol)
	if x.Pending != nil {
		t.Row("Pending:", pending(x))
	}
	if x.Selector != "" {
		t.Row("Namespaces:", "those with "+x.Selector)
	}
	t.Row("Discovery:", discovery(x, g.Now))
	for _, h := range x.Withheld {
		t.Row("Withheld:", fmt.Sprintf("%s, because spec.hooks of policy %s does not list %s", h.Handler, h.Policy, h.Hook))
	}
	if x.Rollout != nil {
		t.Row("Rollout:", memberText(x.Rollout))
	}
	if x.Undiscovered != "" {
		t.Row("Effect:", Message(&status.Extension{Undiscovered: x.Undiscovered}))
	}
	for i := range x.Certificates {
		c := &x.Certificates[i]
		t.Row(CertificateTitle(c)+":", CertificateText(c, g.Now))
	}
	if x.Expiring != "" {
		t.Row("Expiring:", x.Expiring)
	}
	if x.HealthUnchecked {
		t.Row("Health check:", "off, because its gRPC server has no health service: calls go to every address of the "+
			"server that accepts connections")
	}
	t.Row("Server circuit:", circuitOf(x, g.Now))
	t.Row("Calls now:", fmt.Sprintf("%d in flight (limit %d), %d waiting (limit %d)",
		x.InFlight, x.Limits.InFlight, x.Waiting, x.Limits.Waiting))
	t.Row("Calls:", CallsOf(&x.Calls, g.Window))
	if err := t.Flush(); err != nil {
		return err
	}
	if err := HandlersOf(w, x.Handlers); err != nil {
		return err
	}
	if err := notes(w, x); err != nil {
		return err
	}
	if len(g.Holds) > 0 {
		_, _ = fmt.Fprintln(w)
		if err := Holds(w, g); err != nil {
			return err
		}
	}
	return failures(w, x, g.Now)
}

func stateOf(x *status.Extension, now time.Time) string {
	s := string(x.State)
	if x.Since != nil {
		s += " for " + Age(x.Since, now)
	}
	return s
}

func discovery(x *status.Extension, now time.Time) string {
	switch d := x.Discovery; {
	case d == nil:
		return "not by this process"
	case d.Error == "":
		return fmt.Sprintf("%s ago: %s", Age(&d.At, now), text.Plural(len(x.Handlers), "handler"))
	case x.Stale && len(x.Handlers) > 0:
		return fmt.Sprintf("failing for %s: %s; %s", Age(&d.Since, now), d.Error, stale(x))
	default:
		return fmt.Sprintf("failing for %s: %s", Age(&d.Since, now), d.Error)
	}
}

func circuitOf(x *status.Extension, now time.Time) string {
	s := strings.ReplaceAll(x.Circuit.State, "_", "-")
	if x.Circuit.Kind != "" {
		s += ", because calls failed with " + x.Circuit.Kind
	}
	if x.Circuit.Since != nil {
		s += ", for " + Age(x.Circuit.Since, now)
	}
	if x.Circuit.Opened > 0 {
		s += ", opened " + times(x.Circuit.Opened)
	}
	return s
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// CallsOf says in a line how the calls of the window went.
func CallsOf(c *status.Calls, window status.Seconds) string {
	in := " in " + duration.HumanDuration(window.Duration())
	if c.Total == 0 {
		return "none" + in
	}
	s := fmt.Sprintf("%d%s, %d failed, p50 %s, p99 %s", c.Total, in, c.Failures, Latency(c.P50), Latency(c.P99))
	if c.NearTimeout > 0 {
		s += fmt.Sprintf(", %d near the timeout", c.NearTimeout)
	}
	return s
}

// hookOf returns the name of a handler's hook, with the version unless that is Cluster API's.
func hookOf(h *status.Handler) string {
	if h.APIVersion == "" || strings.HasPrefix(h.APIVersion, "hooks.runtime.cluster.x-k8s.io/") {
		return h.Hook
	}
	return h.Hook + " (" + h.APIVersion + ")"
}

// Noted reports whether there is more to say about one of the handlers than its columns do.
func Noted(handlers []status.Handler) bool {
	return slices.ContainsFunc(handlers, func(h status.Handler) bool {
		lists := len(h.Lost) + len(h.Misspelt) + len(h.Chains) + len(h.RefusedClusters)
		texts := Reason(&h) + h.Collision + h.Deprecated + h.Unsteady + h.Messages + h.Lifted
		return texts != "" || lists > 0
	})
}

// Refused returns which Clusters' calls to a handler are refused, or nothing.
func Refused(h *status.Handler) string {
	if len(h.RefusedClusters) == 0 {
		return ""
	}
	return "calls are refused, because they fail, for Cluster " + text.Join(h.RefusedClusters, ", ", limits.Problems)
}

// MessageNotes says what there is to know about the messages of a handler, and which of its holds are lifted.
func MessageNotes(h *status.Handler) (notes []string) {
	if h.Unsteady != "" {
		notes = append(notes, h.Unsteady)
	}
	if h.Messages != "" {
		notes = append(notes, "messages: "+h.Messages+" masks times, durations and identifiers in its messages")
	}
	if h.Lifted != "" {
		notes = append(notes, "liftedHolds lifts its holds of Cluster "+h.Lifted)
	}
	return notes
}

// Reason returns why a handler alone is not Up. That of one whose extension is down is the extension's.
func Reason(h *status.Handler) string {
	if h.State == status.Down {
		return ""
	}
	return h.Error
}

// notes writes of which chains handlers are steps, why they are not Up, what conversions lose, what is deprecated, and
// what is misspelt.
func notes(w io.Writer, x *status.Extension) error {
	t := table.New(w)
	t.Fold()
	if Noted(x.Handlers) || len(x.Misspelt) > 0 {
		t.Header("HANDLER", "NOTE")
	}
	for _, text := range x.Misspelt {
		t.Row("(discovery)", "its answer: "+text)
	}
	for i := range x.Handlers {
		h := &x.Handlers[i]
		if reason := Reason(h); reason != "" {
			t.Row(h.Name, reason)
		}
		if refused := Refused(h); refused != "" {
			t.Row(h.Name, refused)
		}
		for _, note := range MessageNotes(h) {
			t.Row(h.Name, note)
		}
		if len(h.Chains) > 0 {
			t.Row(h.Name, "step of "+strings.Join(h.Chains, ", "))
		}
		if h.Collision != "" {
			t.Row(h.Name, h.Collision)
		}
		if h.Deprecated != "" {
			t.Row(h.Name, h.Deprecated)
		}
		for _, path := range h.Lost {
			t.Row(h.Name, "conversion loses "+path)
		}
		for _, text := range h.Misspelt {
			t.Row(h.Name, "its answer: "+text)
		}
	}
	return t.Flush()
}

func failures(w io.Writer, x *status.Extension, now time.Time) error {
	t := table.New(w)
	t.Optional("CALL ID", "TOOK", "TIMES", "KIND")
	if len(x.Failures) > 0 {
		t.Header("FAILURE", "TIMES", "HANDLER", "KIND", "TOOK", "CALL ID", "MESSAGE")
	}
	for i := range x.Failures {
		f := &x.Failures[i]
		kind := f.Kind
		if f.Outcome == "ignored" {
			kind += " (ignored)"
		}
		t.Row(Age(&f.At, now)+" ago", strconv.Itoa(f.Times), f.Handler, kind, Latency(f.Took), f.CallID, f.Message)
	}
	return t.Flush()
}
