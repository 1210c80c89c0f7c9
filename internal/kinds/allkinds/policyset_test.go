// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package allkinds_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
	"github.com/hookgate/hookgate/registry"
)

// policyFor returns a policy for an ExtensionConfig, or for "<ExtensionConfig>/<handler>".
func policyFor(name, target string, change ...func(*extensionpolicy.Policy)) extensionpolicy.Policy {
	config, handler, _ := strings.Cut(target, "/")
	p := extensionpolicy.Policy{
		Name: name, Target: extensionpolicy.Target{ExtensionConfig: config, Handler: handler}, Protocol: registry.REST,
		Compiled: &policy.Policy{Name: name},
	}
	for _, f := range change {
		f(&p)
	}
	return p
}

func speaks(protocol registry.Protocol) func(*extensionpolicy.Policy) {
	return func(p *extensionpolicy.Policy) { p.Protocol = protocol }
}

func understands(version string) func(*extensionpolicy.Policy) {
	return func(p *extensionpolicy.Policy) { p.Compiled.ClusterAPIVersion = version }
}

func waits(timeout time.Duration) func(*extensionpolicy.Policy) {
	return func(p *extensionpolicy.Policy) { p.Compiled.Timeout = timeout }
}

// policyFixture is a PolicySet in front of a registry, with the ExtensionConfigs that exist.
type policyFixture struct {
	registry *registry.Registry
	tracking *discovery.TrackingRegistry
	exists   map[string]bool
	logs     *discoverytest.Logs
	set      *extensionpolicy.Set
}

func newPolicyFixture(configs ...string) *policyFixture {
	w := &policyFixture{registry: registry.New(), exists: map[string]bool{}, logs: &discoverytest.Logs{}}
	for _, name := range configs {
		w.exists[name] = true
	}
	w.tracking = discovery.NewTrackingRegistry(w.registry)
	types, err := policy.NewTypes(catalog.New())
	if err != nil {
		panic(err)
	}
	w.set = extensionpolicy.NewSet(w.tracking, func(name string) bool { return w.exists[name] }, types, w.logs.Logger())
	return w
}

func (w *policyFixture) apply(t *testing.T, name string, handlers ...string) {
	t.Helper()
	x := discoverytest.Extension(name, urlA).Registration
	x.Handlers = discoverytest.Handlers(handlers...)
	if err := w.tracking.ApplyAll([]registry.Registration{x})[0]; err != nil {
		t.Fatal(err)
	}
}

func TestSetReturnsExtensionConfigsThatAreCalledInAnotherWay(t *testing.T) {
	all := func(change ...func(*extensionpolicy.Policy)) extensionpolicy.Policy {
		return policyFor("p", "acme", change...)
	}
	own := func(change ...func(*extensionpolicy.Policy)) extensionpolicy.Policy {
		return policyFor("q", "acme/v", change...)
	}
	type list = []extensionpolicy.Policy
	for name, tc := range map[string]struct {
		before, after list
		want          []string
	}{
		"Nothing":           {nil, nil, nil},
		"Timeout":           {nil, list{all(waits(time.Second))}, nil},
		"Protocol":          {nil, list{all(speaks(registry.GRPC))}, []string{"acme"}},
		"SameProtocol":      {list{all(speaks(registry.GRPC))}, list{all(speaks(registry.GRPC), waits(time.Second))}, nil},
		"ProtocolGone":      {list{all(speaks(registry.GRPC))}, nil, []string{"acme"}},
		"Version":           {list{all()}, list{all(understands("v1beta1"))}, []string{"acme"}},
		"VersionOfHandler":  {list{all()}, list{all(), own(understands("v1beta1"))}, []string{"acme"}},
		"OtherVersion":      {list{all(understands("v1beta1"))}, list{all(understands("v1beta2"))}, []string{"acme"}},
		"VersionGone":       {list{own(understands("v1beta1"))}, list{own()}, []string{"acme"}},
		"OwnWithoutVersion": {list{all(understands("v1beta1"))}, list{all(understands("v1beta1")), own()}, []string{"acme"}},
		"InOrder":           {nil, list{policyFor("b", "b", speaks(registry.GRPC)), policyFor("a", "a", understands("v1beta1"))}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPolicyFixture()
			w.set.Use(items(tc.before, nil))
			after := slices.Clone(tc.after)
			if diff := cmp.Diff(tc.want, w.set.Use(items(after, nil))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := w.set.Use(items(after, nil)); len(got) > 0 {
				t.Errorf("the same policies again change %v", got)
			}
		})
	}
}

func TestSetReplacesThePoliciesOfTheRegistry(t *testing.T) {
	w := newPolicyFixture("a", "b")
	w.apply(t, "a", "v", "w")
	w.apply(t, "b", "v")
	timeouts := func() string {
		m := map[string]string{}
		for _, e := range w.registry.Snapshot().All() {
			m[e.Name] = e.Handler.Timeout.String()
		}
		return fmt.Sprint(m)
	}
	for _, step := range []struct {
		policies []extensionpolicy.Policy
		want     string
	}{
		{[]extensionpolicy.Policy{policyFor("p", "a", waits(time.Second)), policyFor("q", "b/v", waits(2*time.Second))}, "map[v.a:1s v.b:2s w.a:1s]"},
		{[]extensionpolicy.Policy{policyFor("p", "a/w", waits(3*time.Second))}, "map[v.a:10s v.b:10s w.a:3s]"},
		{nil, "map[v.a:10s v.b:10s w.a:10s]"},
	} {
		if w.set.Use(items(step.policies, nil)); timeouts() != step.want {
			t.Errorf("timeouts are %s, want %s", timeouts(), step.want)
		}
	}
}

func TestWithProtocol(t *testing.T) {
	w := newPolicyFixture()
	w.set.Use(items([]extensionpolicy.Policy{policyFor("p", "acme", speaks(registry.GRPC))}, nil))
	for name, tc := range map[string]struct {
		reason    string
		extension extensionconfig.Extension
		want      registry.Protocol
		err       string
	}{
		"Policy":   {"the policy says it", discoverytest.Extension("acme", "https://a.example.com:443"), registry.GRPC, ""},
		"NoPolicy": {"nothing says it", discoverytest.Extension("other", urlA), registry.REST, ""},
		"BadForIt": {"gRPC has no paths", discoverytest.Extension("acme", "https://a.example.com:443/x"), registry.GRPC, "spec.clientConfig: https://a.example.com:443/x: the ExtensionPolicy sets protocol GRPC, so the URL must not have a path"},
		"URLSaysIt": {"the URL decides", func() extensionconfig.Extension {
			x := discoverytest.Extension("other", "grpcs://a:1")
			x.ClientConfig.Protocol = registry.GRPC
			return x
		}(), registry.GRPC, ""},
	} {
		before := tc.extension.ClientConfig.Protocol
		got, err := w.set.WithProtocol(tc.extension)
		if (err == nil) != (tc.err == "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) || got.ClientConfig.Protocol != tc.want {
			t.Errorf("%s: %s: got %q, %v, want %q, %s", name, tc.reason, got.ClientConfig.Protocol, err, tc.want, tc.err)
		}
		if tc.extension.ClientConfig.Protocol != before {
			t.Errorf("%s: the argument has changed", name)
		}
	}
}

func TestClusterAPIVersionOfHandlers(t *testing.T) {
	w := newPolicyFixture()
	w.set.Use(items([]extensionpolicy.Policy{policyFor("p", "acme", understands("v1beta1")), policyFor("q", "acme/own", waits(time.Second))}, nil))
	stated := registry.Handler{Name: "v", ClusterAPIVersion: "v1beta2"}
	own := registry.Handler{Name: "own", ClusterAPIVersion: "v1beta2"}
	for name, tc := range map[string]struct {
		config  string
		handler registry.Handler
		want    string
	}{
		"Policy": {"acme", stated, "v1beta1"}, "OwnPolicyWithoutIt": {"acme", own, "v1beta1"}, "NoPolicy": {"other", stated, "v1beta2"},
	} {
		if got := w.set.ClusterAPIVersion(tc.config, tc.handler); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

// A target may appear and disappear; the TrackingRegistry signals each change.
func TestVerdictsFollowTargets(t *testing.T) {
	w := newPolicyFixture()
	w.set.Use(items([]extensionpolicy.Policy{policyFor("all", "acme"), policyFor("own", "acme/v")}, nil))
	changed := func() bool {
		select {
		case <-w.tracking.Changed():
			return true
		default:
			return false
		}
	}
	const comes = "; the policy takes effect as soon as its target appears"
	for _, step := range []struct {
		what     string
		do       func()
		changed  bool
		all, own string
	}{
		{"nothing", func() {}, false, `there is no ExtensionConfig, HookRule or HookJob "acme"` + comes, `there is no ExtensionConfig, HookRule or HookJob "acme"` + comes},
		{"ExtensionConfig", func() { w.exists["acme"] = true }, false, "", `ExtensionConfig "acme" has not been discovered yet` + comes},
		{"other handler", func() { w.apply(t, "acme", "w") }, true, "", `ExtensionConfig "acme" has no handler "v"` + comes},
		{"no handler", func() { w.apply(t, "acme") }, true, "", `ExtensionConfig "acme" has no handler "v"` + comes},
		{"handler", func() { w.apply(t, "acme", "v", "w") }, true, "", ""},
		{"removal", func() { w.tracking.RemoveAll([]string{"acme"}) }, true, "", `ExtensionConfig "acme" has not been discovered yet` + comes},
	} {
		step.do()
		if got := changed(); got != step.changed {
			t.Errorf("%s: changed is %t", step.what, got)
		}
		verdicts := w.set.Verdicts()
		for name, want := range map[string]string{"all": step.all, "own": step.own} {
			if v := verdicts[name]; v.Accepted() != (want == "") || want != "" && v.Message != want {
				t.Errorf("%s: verdict on %s is %+v, want %q", step.what, name, v, want)
			}
		}
	}
	if got := slices.Sorted(maps.Keys(w.set.Verdicts())); !slices.Equal(got, []string{"all", "own"}) {
		t.Errorf("verdicts are on %v", got)
	}
}

func TestTrackingRegistryKeepsWhatARefusedRegistrationHad(t *testing.T) {
	w := newPolicyFixture("acme")
	w.apply(t, "acme", "v")
	<-w.tracking.Changed()
	x := discoverytest.Extension("acme", urlA).Registration
	x.Handlers = discoverytest.Handlers("v", "V")
	if err := w.tracking.ApplyAll([]registry.Registration{x})[0]; err == nil {
		t.Fatal("names that collide must be refused")
	}
	select {
	case <-w.tracking.Changed():
		t.Error("a refused registration is no change")
	default:
	}
	w.set.Use(items([]extensionpolicy.Policy{policyFor("own", "acme/v")}, nil))
	if v := w.set.Verdicts()["own"]; !v.Accepted() {
		t.Errorf("verdict is %+v", v)
	}
}

func TestReportLogsEachVerdictOnce(t *testing.T) {
	w := newPolicyFixture("acme")
	report := func(policies ...extensionpolicy.Policy) {
		w.set.Use(items(policies, nil))
		w.set.Report(w.set.Verdicts(), func(name string) string { return name + ".yaml:1" })
	}
	p, q := policyFor("p", "acme"), policyFor("q", "acme")
	report(p, q)
	report(p, q)
	if got := w.logs.Lines("level=INFO", "policy is accepted", "extensionPolicy=p", "at=p.yaml:1", "reason=Accepted"); len(got) != 1 {
		t.Errorf("accepted is logged once, got %q", got)
	}
	if got := w.logs.Lines("level=WARN", "policy is not accepted", "extensionPolicy=q", "reason=Conflicted"); len(got) != 1 {
		t.Errorf("conflicted is logged once, got %q", got)
	}
	report(q)
	report(q)
	if got := w.logs.Lines("policy removed", "extensionPolicy=p"); len(got) != 1 {
		t.Errorf("a removal is logged once, got %q", got)
	}
	if got := w.logs.Lines("policy is accepted", "extensionPolicy=q"); len(got) != 1 {
		t.Errorf("another verdict is logged, got %q", got)
	}
	report(policyFor("q", "acme", waits(time.Second)))
	if got := w.logs.Lines("policy is accepted", "extensionPolicy=q"); len(got) != 2 {
		t.Errorf("another content is logged, got %q", got)
	}
}

// TestListed has the status list what was reported, by name, with the policies that are not valid, up to a limit.
func TestListed(t *testing.T) {
	w := newPolicyFixture("acme")
	if got, missed := w.set.Listed(); len(got) != 0 || missed != 0 {
		t.Errorf("before the first report: %v, %d", got, missed)
	}
	w.apply(t, "acme", "v")
	bad := &v1alpha1.ExtensionPolicy{}
	bad.Spec.TargetRef = v1alpha1.TargetReference{Name: "x", Handler: "h"}
	valid := items([]extensionpolicy.Policy{policyFor("kept", "acme"), policyFor("good", "acme/v"), policyFor("late", "acme/v")},
		map[string]string{"kept": "typo"})
	w.set.Use(append(valid, kinds.Item{Name: "bad", Object: bad, Mistake: strings.Repeat("m", 5000)}))
	w.set.Report(w.set.Verdicts(), nil)
	got, missed := w.set.Listed()
	if len(got) != 4 || len(got[0].Message) > limits.PolicyMessageBytes {
		t.Fatalf("got %+v", got)
	}
	got[0].Message = "long"
	if want := []status.Policy{
		{Name: "bad", Target: "x/h", Reason: "Invalid", Message: "long"},
		{Name: "good", Target: "acme/v", Accepted: true, Reason: "Accepted", Message: `In effect for handler "v" of ExtensionConfig "acme"`},
		{Name: "kept", Target: "acme", Reason: "Invalid", Message: "typo"},
		{Name: "late", Target: "acme/v", Reason: "Conflicted", Message: `ExtensionPolicy "good", which comes first by name, ` +
			`is also for handler "v" of ExtensionConfig "acme": delete one of the two policies, or change a targetRef`},
	}; cmp.Diff(want, got) != "" || missed != 0 {
		t.Errorf("%d missed; -want +got\n%s", missed, cmp.Diff(want, got))
	}

	many := map[string]string{}
	for n := range limits.StatusPolicies + 3 {
		many[fmt.Sprintf("p-%05d", n)] = "typo"
	}
	w.set.Use(items([]extensionpolicy.Policy(nil), many))
	w.set.Report(w.set.Verdicts(), nil)
	if got, missed = w.set.Listed(); len(got) != limits.StatusPolicies || missed != 3 {
		t.Errorf("of too many, %d are listed and %d missed", len(got), missed)
	}
}

// Conditions are checked against the requests of the handlers that a policy is for, once they are known. A policy with a
// mistake stays in effect.
func TestConditionsAreCheckedAgainstKnownHandlers(t *testing.T) {
	conditioned := func(expression string) func(*extensionpolicy.Policy) {
		return func(p *extensionpolicy.Policy) {
			c, err := policy.NewCompiler()
			if err != nil {
				t.Fatal(err)
			}
			compiled, errs := c.Compile([]policy.Condition{{Name: "a", Expression: expression}})
			if len(errs) > 0 {
				t.Fatal(errs[0])
			}
			p.Compiled.Conditions = compiled
		}
	}
	w := newPolicyFixture("acme")
	w.set.Use(items([]extensionpolicy.Policy{
		policyFor("all", "acme", conditioned(`request.items.exists(i, i.uid != '')`)),
		policyFor("one", "acme/v", conditioned(`request.cluster.metadata.name != ''`)),
		policyFor("typo", "acme/w", conditioned(`request.cluster.metadata.nmae != ''`)),
	}, nil))
	const place = "spec.matchConditions[0].expression: Invalid value: "
	typo := `In effect for handler "w" of ExtensionConfig "acme", and calls fail if the policy applies to them: ` + place + "does not suit the requests of any hook; " +
		"in a request of AfterClusterUpgrade: line 1, column 25: undefined field 'nmae'"
	if v := w.set.Verdicts(); v["all"].Reason != "Accepted" && v["all"].Reason != "TargetNotFound" || v["typo"].Message != typo {
		t.Errorf("before handlers are known: got %+v", v)
	}
	w.apply(t, "acme", "v", "w")
	v := w.set.Verdicts()
	want := `In effect for ExtensionConfig "acme", and calls fail if the policy applies to them: ` + place + "in a request of BeforeClusterCreate: " +
		"line 1, column 8: undefined field 'items'"
	if v["all"].Message != want || v["all"].Reason != "Invalid" {
		t.Errorf("all: got %+v, want %s", v["all"], want)
	}
	if !v["one"].Accepted() || v["typo"].Accepted() || v["typo"].Message != typo {
		t.Errorf("got %+v, %+v", v["one"], v["typo"])
	}
	snapshot := w.registry.Snapshot()
	if e, ok := snapshot.Handler("w.acme"); !ok || e.Policy == nil || e.Policy.Conditions == nil {
		t.Errorf("the policy with a mistake is not in effect: %+v", e)
	}
}

// A policy that cannot offer all names as they are says which, and which other handler has them.
func TestVerdictsNameCollisions(t *testing.T) {
	original := func(p *extensionpolicy.Policy) { p.Compiled.OfferAs = policy.Original }
	w := newPolicyFixture("acme", "other")
	w.apply(t, "acme", "p", "q")
	w.set.Use(items([]extensionpolicy.Policy{policyFor("a", "acme", original), policyFor("o", "other", original)}, nil))
	if v := w.set.Verdicts()["a"]; !v.Accepted() {
		t.Errorf("nothing collides, and the verdict is %+v", v)
	}
	<-w.tracking.Changed()
	w.apply(t, "other", "p")
	<-w.tracking.Changed() // so that verdicts are looked at again
	verdicts := w.set.Verdicts()
	const want = `In effect for ExtensionConfig "acme", except for spec.offerAs: handler "p.acme" is offered as "p--acme", ` +
		`because "p" is also the name of handler "p.other"; to resolve a conflict, rename one of the two, or set offerAs: Qualified`
	if v := verdicts["a"]; v.Reason != "NameCollision" || v.Message != want {
		t.Errorf("verdict is %+v, want %s", v, want)
	}
	if v := verdicts["o"]; v.Reason != "NameCollision" || !strings.Contains(v.Message, `handler "p.other" is offered as "p--other"`) {
		t.Errorf("verdict is %+v", v)
	}
	w.set.Report(verdicts, nil)
	if got := w.logs.Lines("level=WARN", "extensionPolicy=a", "p.acme", "p.other"); len(got) != 1 {
		t.Errorf("the log has %q", got)
	}
	w.tracking.RemoveAll([]string{"other"})
	if v := w.set.Verdicts()["a"]; !v.Accepted() {
		t.Errorf("the other is gone, and the verdict is %+v", v)
	}
}
