// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package allkinds_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/sources/directory"
	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
	"github.com/hookgate/hookgate/internal/sources/manifest"
	"github.com/hookgate/hookgate/registry"
)

// The folder of a kind: a Toy answers a hook with a word.

type toy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Hook string `json:"hook"`
		Says string `json:"says"`
	} `json:"spec"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func (o *toy) DeepCopyObject() runtime.Object {
	c := *o
	c.ObjectMeta = *o.DeepCopy()
	return &c
}

// Kind implements registry.Answerer.
func (*toy) Kind() string { return toyKind.Name }

// Answer implements registry.Answerer.
func (o *toy) Answer(context.Context, proto.Message, policy.Guard) (proto.Message, error) {
	return nil, hook.Errorf(hook.Internal, "%s", o.Spec.Says)
}

func compileToy(o *toy) (reg registry.Registration, errs field.ErrorList) {
	h, ok := catalog.New().ByName(o.Spec.Hook)
	if !ok {
		errs = append(errs, field.NotFound(field.NewPath("spec", "hook"), o.Spec.Hook))
	}
	if o.Spec.Says == "" {
		errs = append(errs, field.Required(field.NewPath("spec", "says"), "must be a word"))
	}
	if len(errs) > 0 {
		return reg, errs
	}
	return registry.Registration{Name: o.Name, InProcess: o, Handlers: []registry.Handler{{
		Name: "toy", Hook: h.GroupVersionHook, Timeout: time.Second, FailurePolicy: hook.Fail,
	}}}, nil
}

var toyKind = func() kinds.Kind {
	k := kinds.Kind{
		Name: "Toy", Shown: kinds.ShownLocal("toy", "toys", kinds.Locals("toys", nil)), Wanted: "toys", Instead: "use another",
		New:        func() kinds.Object { return &toy{} },
		Closes:     kinds.ClosesHook("toy"),
		Condition:  kinds.Verdict.ReadyCondition,
		Conditions: func(o kinds.Object) *[]metav1.Condition { return &o.(*toy).Conditions },
	}
	k.Shown.Ready = kinds.ReadyMetric{Name: "hookgate_toy_ready", Help: "1 for a Toy that is ready.", Label: "toy"}
	return k
}()

// A kind is a folder and a line: whoever has both has objects that are followed, refused, closed while they are wrong,
// listed and described, and metrics of them.
func TestAddedKind(t *testing.T) {
	hooks := catalog.New()
	allkinds.Add(t, toyKind, func(*allkinds.Config) kinds.Rules {
		return kinds.Rules{Kind: toyKind, Compile: kinds.Compiler(compileToy)}
	}, func(c *allkinds.SetConfig) kinds.Set {
		return kinds.NewLocalSet(&toyKind, c.Registry, c.Hooks, c.Logger)
	})
	dir := t.TempDir()
	write := func(name, says string) {
		t.Helper()
		content := "apiVersion: hookgate.dev/v1alpha1\nkind: Toy\nmetadata: {name: " + name +
			"}\nspec: {hook: BeforeClusterUpgrade, says: " + says + "}\n"
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("loud", "boo")
	write("mute", `""`)

	// Refused.
	problems, err := manifest.Lint([]string{dir}, hooks)
	const mistake = "spec.says: Required value: must be a word"
	if err != nil || len(problems) != 1 || problems[0].Object != `Toy "mute"` || problems[0].Err.Error() != mistake {
		t.Fatalf("lint found %v, %v", problems, err)
	}

	// Followed, and closed while it is wrong.
	reg, quiet := registry.New(hooks.Merged()...), slog.New(slog.DiscardHandler)
	source, err := directory.New(directory.Config{
		Dir: dir, Catalog: hooks, Registry: reg, Discoverer: discoverytest.NewExtensions(), Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	eventually := func(what string, is func(*registry.Snapshot) bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !is(reg.Snapshot()); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("never: " + what)
			}
		}
	}
	serves := func(s *registry.Snapshot, name string) bool {
		e, ok := s.Handler("toy." + name)
		return ok && s.Ready() && e.Registration.InProcess.Kind() == "Toy"
	}
	eventually("loud is served, and mute closed", func(s *registry.Snapshot) bool {
		closed := s.Closures()
		return serves(s, "loud") && len(closed) == 1 && closed[0].Kind == "Toy" && closed[0].Name == "mute" &&
			len(closed[0].Hooks) == 1 && closed[0].Hooks[0].Hook == "BeforeClusterUpgrade"
	})

	// Listed and described.
	series := prometheus.NewRegistry()
	metrics := observe.NewMetrics(series, reg, hooks, "v1")
	reporter := &observe.Reporter{
		Catalog: hooks, Registry: reg, Namespaces: source, Objects: source.Objects,
		Observer: observe.NewObserver(metrics, noop.NewTracerProvider(), quiet, convert.NewLosses(nil)),
	}
	metrics.Report(reporter)
	eventually("verdicts on both are listed", func(*registry.Snapshot) bool {
		return len(toyKind.Shown.In.Rows(reporter.Gateway())) == 2
	})
	tableOf := func(write func(w io.Writer, g *status.Gateway) error, g *status.Gateway) string {
		t.Helper()
		var b bytes.Buffer
		if err := write(&b, g); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	short := func(w io.Writer, g *status.Gateway) error { return toyKind.Shown.Table(w, g, false) }
	if got := tableOf(short, reporter.Gateway()); !strings.Contains(got, "loud BeforeClusterUpgrade True Ready") ||
		!strings.Contains(got, "mute BeforeClusterUpgrade False Invalid") || !strings.Contains(got, mistake) {
		t.Errorf("the table is %s", got)
	}
	g, ok := reporter.Object("toy", "loud")
	if got := tableOf(toyKind.Shown.Describe, g); !ok || !strings.Contains(got, "Name: loud Hook: BeforeClusterUpgrade Ready: True, Ready") {
		t.Errorf("of loud: %t %s", ok, got)
	}
	answer := httptest.NewRecorder()
	reporter.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, status.Path+"?toy=lout", http.NoBody))
	if answer.Code != http.StatusNotFound || answer.Body.String() != "there is no Toy \"lout\": did you mean \"loud\"?\n" {
		t.Errorf("of none: %d %s", answer.Code, answer.Body)
	}
	if n, err := testutil.GatherAndCount(series, "hookgate_toy_ready"); err != nil || n != 2 {
		t.Errorf("%d series, %v", n, err)
	}

	// What is corrected is in effect, and closes nothing.
	write("mute", "boo")
	eventually("mute is served", func(s *registry.Snapshot) bool { return serves(s, "mute") && len(s.Closures()) == 0 })
}
