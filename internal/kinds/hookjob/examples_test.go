// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/internal/sources/manifest"
)

// The examples are valid, as a gateway with the usual flags sees them, and a shell can read their scripts.
func TestExamples(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "examples", "jobs")
	hooks, err := catalog.With(catalog.Own()...)
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := manifest.Lint([]string{dir}, hooks); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			o := &v1alpha1.HookJob{}
			if err := yaml.Unmarshal([]byte(document), o); err != nil {
				t.Fatal(err)
			}
			if o.Kind != hookjob.Kind {
				continue
			}
			if _, errs := compiler(t, &hookjob.Allowed{Namespaces: []string{"hookgate-jobs"}}).Compile(o); len(errs) > 0 {
				t.Errorf("%s: %v", file, errs)
			}
			var template batchv1.JobTemplateSpec
			if err := yaml.Unmarshal(o.Spec.JobTemplate.Raw, &template); err != nil {
				t.Fatal(err)
			}
			for _, c := range template.Spec.Template.Spec.Containers {
				if c.Command[0] != "sh" {
					continue
				}
				check := exec.CommandContext(t.Context(), "sh", "-n")
				check.Stdin = strings.NewReader(c.Args[0])
				if out, err := check.CombinedOutput(); err != nil {
					t.Errorf("%s: %v: %s", file, err, out)
				}
			}
		}
	}
}
