// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/internal/sources/manifest"
)

// formatText is the format of compilers: a line for each problem.
const formatText = "text"

// NewLintCommand returns the command hookgate lint.
func NewLintCommand(hooks *catalog.Catalog) *cobra.Command {
	output := formatText
	cmd := &cobra.Command{
		Use:   "lint DIR|FILE...",
		Short: "Find mistakes in manifests of ExtensionConfigs, policies, rules and chains",
		Long: "Find mistakes in manifests before you apply them, or before a gateway reads them: violations of\n" +
			"the schemas, policies in conflict, Services without the port that an ExtensionConfig names,\n" +
			"and expressions that do not suit the requests of their hooks. lint reads the hooks of an\n" +
			"extension from status.handlers. If an ExtensionConfig has no status.handlers, its match\n" +
			"conditions must suit at least one hook, and lint assumes that the extension has the handlers\n" +
			"that HandlerChains name. lint needs no gateway and no cluster. To test what rules and chains\n" +
			"answer, use \"hookgate rule test\" and \"hookgate chain test\".\n\n" +
			"The exit status is 0 if there is no mistake, 1 if there is a mistake or a file cannot be read, and\n" +
			"2 for wrong usage. Warnings, for example about unknown kinds, do not change the exit status.",
		Example: "  hookgate lint manifests/\n" +
			"  hookgate lint policy.yaml -o sarif > lint.sarif",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmdline.Usagef("want directories or files with manifests")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{formatText, cmdline.FormatJSON, formatSARIF}, output) {
				return cmdline.Usagef("--output %q: want text, json or sarif", output)
			}
			problems, err := manifest.Lint(args, hooks)
			if err != nil {
				return fmt.Errorf("lint: %w", err)
			}
			found := lintedOf(problems)
			if err := found.write(cmd.OutOrStdout(), output); err != nil {
				return fmt.Errorf("print problems: %w", err)
			}
			if n := found.errors(); n > 0 {
				return fmt.Errorf("lint: %s", text.Plural(n, "mistake"))
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", formatText,
		"format: text, a line for each problem; json; or sarif, for CI systems")
	return cmd
}

// linted are problems as lint prints them.
type linted []lintProblem

type lintProblem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Level   string `json:"level"` // error or warning
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
}

func lintedOf(problems []manifest.Problem) linted {
	found := make(linted, len(problems))
	for i := range problems {
		p := &problems[i]
		found[i] = lintProblem{File: p.File, Line: p.Line, Level: "error", Object: p.Object, Message: p.Err.Error()}
		if p.Warning {
			found[i].Level = "warning"
		}
	}
	return found
}

// errors returns the number of problems that are no warnings.
func (l linted) errors() int {
	n := 0
	for i := range l {
		if l[i].Level == "error" {
			n++
		}
	}
	return n
}

func (l linted) write(w io.Writer, format string) error {
	switch format {
	case cmdline.FormatJSON:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]linted{"problems": l})
	case formatSARIF:
		return l.writeSARIF(w)
	}
	for i := range l {
		if _, err := fmt.Fprintln(w, text.Printable(l[i].String())); err != nil {
			return err
		}
	}
	return nil
}

// String returns the form that editors and terminals make a link of.
func (p *lintProblem) String() string {
	return fmt.Sprintf("%s: %s: %s", manifest.Place{File: p.File, Line: p.Line}, p.Level, p.text())
}

func (p *lintProblem) text() string {
	if p.Object == "" {
		return p.Message
	}
	return p.Object + ": " + p.Message
}

// kindPages are the pages about the kinds of manifests.
var kindPages = map[string]string{
	extensionconfig.Kind: "cluster.md", extensionpolicy.Kind: "extension-policy.md",
	handlerchain.Kind: "handler-chains.md", handlerchain.TestKind: "handler-chains.md",
	hookrule.Kind: "rules.md", hookrule.TestKind: "rules.md", hookjob.Kind: "jobs.md", rollout.Kind: "rollouts.md",
}

// sarifRule returns the identifier of the rule that a problem breaks, and the page about the kind of its object.
func (p *lintProblem) sarifRule() (id, page string) {
	kind, _, _ := strings.Cut(p.Object, " ")
	if page, ok := kindPages[kind]; ok {
		return kind, page
	}
	return "manifest", "mistakes.md"
}

func (l linted) writeSARIF(w io.Writer) error {
	const docs = "https://github.com/hookgate/hookgate/blob/main/docs/"
	run := sarif.NewRunWithInformationURI("hookgate lint", docs+"README.md")
	run.Tool.Driver.WithVersion(cmdline.CurrentBuild().Version)
	for i := range l {
		p := &l[i]
		rule, page := p.sarifRule()
		run.AddRule(rule).WithHelpURI(docs + page).
			WithShortDescription(sarif.NewMultiformatMessageString().
				WithText("A manifest that a gateway would not use as intended."))
		place := sarif.NewPhysicalLocation().WithArtifactLocation(
			sarif.NewArtifactLocation().WithURI((&url.URL{Path: filepath.ToSlash(p.File)}).String()))
		if p.Line > 0 {
			place.WithRegion(sarif.NewRegion().WithStartLine(p.Line))
		}
		run.CreateResultForRule(rule).WithLevel(p.Level).WithMessage(sarif.NewTextMessage(p.text())).
			AddLocation(sarif.NewLocation().WithPhysicalLocation(place))
	}
	report := sarif.NewReport()
	report.AddRun(run)
	return report.PrettyWrite(w)
}
