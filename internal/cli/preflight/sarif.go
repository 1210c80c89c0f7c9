// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

// help is the page that explains the rules, each under its identifier.
const help = "https://github.com/hookgate/hookgate/blob/main/docs/upgrading.md"

// WriteSARIF writes the findings as SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html),
// except those of level OK. version is the version of this program. The location of an object in a file is its file and
// line, relative if the path is; an object in a cluster has a logical location.
func (r *Report) WriteSARIF(w io.Writer, version string) error {
	run := sarif.NewRunWithInformationURI("hookgate preflight", help)
	run.Tool.Driver.WithVersion(version)
	for _, rule := range Rules() {
		if rule.Level == OK {
			continue
		}
		run.AddRule(rule.ID).
			WithShortDescription(sarif.NewMultiformatMessageString().WithText(rule.Text)).
			WithHelp(sarif.NewMultiformatMessageString().WithText(rule.Help)).
			WithHelpURI(help + "#" + rule.ID).
			WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(sarifLevel(rule.Level)))
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Level == OK {
			continue
		}
		run.CreateResultForRule(f.Rule).WithLevel(sarifLevel(f.Level)).
			WithMessage(sarif.NewTextMessage(r.sarifText(f))).
			AddLocation(f.sarifLocation()).
			WithPartialFingerprints(map[string]string{
				"subject/v1": f.Rule + " " + f.Object() + " " + f.ExtensionPolicy,
			})
	}
	report := sarif.NewReport()
	report.AddRun(run)
	return report.PrettyWrite(w)
}

func sarifLevel(l Level) string {
	return map[Level]string{Break: "error", Unknown: "error", Degrade: "warning", Warn: "note"}[l]
}

// sarifText returns everything about a finding in one text: readers of SARIF see nothing else.
func (r *Report) sarifText(f *Finding) string {
	var b strings.Builder
	switch {
	case f.Handler != "":
		fmt.Fprintf(&b, "Handler %s: ", f.Object())
	case f.ExtensionConfig != "":
		fmt.Fprintf(&b, "ExtensionConfig %s: ", f.ExtensionConfig)
	case f.HandlerChain != "":
		fmt.Fprintf(&b, "HandlerChain %s: ", f.HandlerChain)
	}
	b.WriteString(f.Problem + ".\n")
	if len(f.Lost) > 0 {
		fmt.Fprintf(&b, "What may be lost: %s.\n", strings.Join(f.Lost, ", "))
	}
	if f.Remedy != "" {
		fmt.Fprintf(&b, "What to do: %s.\n", f.Remedy)
	}
	for _, name := range f.Policies {
		for _, p := range r.Policies {
			if p.Name == name {
				b.WriteString("\n" + p.Manifest)
			}
		}
	}
	return b.String()
}

func (f *Finding) sarifLocation() *sarif.Location {
	l := sarif.NewLocation()
	if f.Location.File != "" {
		l.WithPhysicalLocation(sarif.NewPhysicalLocation().
			WithArtifactLocation(sarif.NewSimpleArtifactLocation(fileURI(f.Location.File))).
			WithRegion(sarif.NewRegion().WithStartLine(max(1, f.Location.Line))))
	}
	name, kind := f.Object(), "ExtensionConfig"
	switch {
	case f.Rule == rulePolicy:
		name, kind = f.ExtensionPolicy, "ExtensionPolicy"
	case f.Handler != "":
		kind = "handler"
	case f.HandlerChain != "":
		kind = "HandlerChain"
	case f.Rule == ruleSeveral:
		kind = "hook"
	case f.ExtensionConfig == "":
		return l
	}
	return l.AddLogicalLocation(sarif.NewLogicalLocation().WithName(name).WithKind(kind).
		WithFullyQualifiedName(strings.ToLower(kind) + "/" + name))
}

// fileURI returns a relative reference for a relative path, and a URL for an absolute one.
func fileURI(path string) string {
	u := url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
	}
	return u.String()
}
