// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/conformance"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// errGone is the error of a watch that ends while the extension is down.
var errGone = errors.New("the extension no longer answers")

// watch checks the extension each time that it has restarted, until the command is interrupted. The error is that of
// the last results, or errGone.
func (o *checkOptions) watch(
	cmd *cobra.Command, hooks *catalog.Catalog, progress *progressLine,
	run func(context.Context) (conformance.Report, error),
) error {
	restarts, err := o.newRestarts(hooks)
	if err != nil {
		return err
	}
	defer restarts.close()
	ctx, screen := cmd.Context(), cmdline.NewScreen(cmd.OutOrStdout())
	var last *conformance.Report
	why, again := "the first run", false
	for {
		report, err := run(ctx)
		if ctx.Err() != nil {
			return o.lastOf(last)
		}
		if usage, ok := errors.AsType[cmdline.UsageError](o.checkError(err)); ok {
			return usage
		}
		restarts.begin(ctx) // before anybody sees the results, and restarts the extension
		if again = len(report.Results) == 0 && !restarts.gone && !again; again {
			continue // it has come meanwhile; if it has not, the error is printed the second time
		}
		progress.show("")
		screen.Clear()
		_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s, %s:\n", time.Now().Format(time.TimeOnly), why)
		if len(report.Results) == 0 {
			_, _ = fmt.Fprintln(cmd.OutOrStdout(), text.PrintableLines(err.Error()))
		} else if err := o.printRun(cmd.OutOrStdout(), last, &report); err != nil {
			return fmt.Errorf("print results: %w", err)
		} else {
			last = &report
		}
		progress.show("waiting for the extension to restart; Ctrl-C to end")
		why = restarts.wait(ctx, func() {
			if len(report.Results) == 0 {
				return // the error has been printed
			}
			progress.show("")
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s, %s; waiting for it\n", time.Now().Format(time.TimeOnly), errGone)
			progress.show("waiting for the extension; Ctrl-C to end")
		})
		switch {
		case ctx.Err() == nil:
		case restarts.gone && last != nil:
			return errGone
		default:
			return o.lastOf(last)
		}
	}
}

// lastOf returns the error of the last results.
func (o *checkOptions) lastOf(report *conformance.Report) error {
	if report == nil {
		return errors.New("the extension was not checked: interrupted before there was a result")
	}
	return o.verdict(report)
}

// printRun prints the results of a run, and what has changed since the one before, which is nil for the first run.
func (o *checkOptions) printRun(w io.Writer, before, now *conformance.Report) error {
	if err := now.WriteTable(w, o.verbose); err != nil || before == nil {
		return err
	}
	_, err := fmt.Fprintln(w, changes(before, now))
	return err
}

// changes says which results of a run differ from those of the one before.
func changes(before, now *conformance.Report) string {
	was := map[string]*conformance.Result{}
	for i := range before.Results {
		was[before.Results[i].ID] = &before.Results[i]
	}
	changed := map[string][]string{}
	for i := range now.Results {
		r := &now.Results[i]
		switch b := was[r.ID]; {
		case b == nil: // a report of a run that could not begin
		case b.Status != r.Status:
			word := map[conformance.Status]string{
				conformance.Pass: "now pass", conformance.Fail: "now fail", conformance.Skip: "no longer apply",
				conformance.Error: "could not be carried out",
			}[r.Status]
			changed[word] = append(changed[word], r.ID)
		case r.Status == conformance.Fail && !slices.EqualFunc(b.Findings, r.Findings, sameFinding):
			changed["fail in another way"] = append(changed["fail in another way"], r.ID)
		}
	}
	if len(changed) == 0 {
		return "Since the last run, no result has changed."
	}
	var parts []string
	for _, word := range slices.Sorted(maps.Keys(changed)) {
		parts = append(parts, word+": "+strings.Join(changed[word], ", "))
	}
	return "Since the last run, " + strings.Join(parts, "; ") + "."
}

// sameFinding reports whether two findings are about the same problem. What was sent and got may vary.
func sameFinding(a, b conformance.Finding) bool {
	return a.Handler == b.Handler && a.Problem == b.Problem
}
