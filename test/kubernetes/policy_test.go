// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// newPolicy returns a policy of the test that makes failures of its target be ignored.
func newPolicy(t testing.TB, name, config, handler string) *v1alpha1.ExtensionPolicy {
	t.Helper()
	p := &v1alpha1.ExtensionPolicy{}
	p.Name = name
	p.Labels = map[string]string{clusterv1.WatchLabel: filterOf(t)}
	p.Spec.TargetRef = v1alpha1.TargetReference{Name: config, Handler: handler}
	p.Spec.FailurePolicy = v1alpha1.FailurePolicyIgnore
	return p
}

// awaitAccepted waits until the condition Accepted of a policy is that one, for its present generation.
func awaitAccepted(t testing.TB, c client.Client, name, reason, message string) {
	t.Helper()
	eventually(t, name+" is "+reason+": "+message, func() (string, bool) {
		p := &v1alpha1.ExtensionPolicy{}
		if err := c.Get(context.Background(), client.ObjectKey{Name: name}, p); err != nil {
			t.Fatal(err)
		}
		found := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.AcceptedCondition)
		if found == nil {
			return "no such condition", false
		}
		return found.Reason + ": " + found.Message, found.Reason == reason && found.Message == message &&
			found.ObservedGeneration == p.Generation &&
			(found.Status == metav1.ConditionTrue) == (reason == v1alpha1.AcceptedReason)
	})
}

// awaitPolicy waits until a handler is called as wanted.
func awaitPolicy(t testing.TB, r *replica, name string, want hook.FailurePolicy) {
	t.Helper()
	eventually(t, name+" has failure policy "+string(want), func() (string, bool) {
		e, ok := r.registry.Snapshot().Handler(name)
		if !ok {
			return "not served", false
		}
		return string(e.Handler.FailurePolicy), e.Handler.FailurePolicy == want
	})
}

func TestPolicies(t *testing.T) {
	r := start(t, nil)
	r.ready(t)
	create(t, r.client, newPolicy(t, "policies", "policies", "b"))
	awaitAccepted(t, r.client, "policies", "TargetNotFound",
		`there is no ExtensionConfig "policies"; the policy takes effect as soon as its target appears`)

	x := newExtension(t, "a")
	x.set(func(s *serverOf) { s.broken = true })
	config := newConfig(t, "policies", x)
	create(t, r.client, config)
	awaitAccepted(t, r.client, "policies", "TargetNotFound",
		`ExtensionConfig "policies" has not been discovered yet; the policy takes effect as soon as its target appears`)
	x.set(func(s *serverOf) { s.broken = false })
	awaitAccepted(t, r.client, "policies", "TargetNotFound",
		`ExtensionConfig "policies" has no handler "b"; the policy takes effect as soon as its target appears`)
	awaitPolicy(t, r, "a.policies", hook.Fail)

	x.set(func(s *serverOf) { s.handlers = append(s.handlers, handler("b", "BeforeClusterCreate")) })
	update(t, r.client, "policies", func(c *runtimev1.ExtensionConfig) { c.Spec.Settings = map[string]string{"again": "1"} })
	awaitAccepted(t, r.client, "policies", "Accepted", `In effect for handler "b" of ExtensionConfig "policies"`)
	awaitPolicy(t, r, "b.policies", hook.Ignore)
	awaitPolicy(t, r, "a.policies", hook.Fail)

	t.Run("conflict", func(t *testing.T) {
		second := newPolicy(t, "policies-2", "policies", "b")
		second.Labels = config.Labels
		second.CreationTimestamp = metav1.Now() // which the API server sets; by name it is the second anyway
		second.Spec.FailurePolicy = v1alpha1.FailurePolicyFail
		create(t, r.client, second)
		eventually(t, "policies-2 is in conflict", func() (string, bool) {
			p := &v1alpha1.ExtensionPolicy{}
			if err := r.client.Get(t.Context(), clientKey(second), p); err != nil {
				t.Fatal(err)
			}
			found := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.AcceptedCondition)
			if found == nil {
				return "no condition", false
			}
			return found.Message, found.Reason == "Conflicted" && strings.HasPrefix(found.Message,
				`ExtensionPolicy "policies" is for handler "b" of ExtensionConfig "policies", too, and `)
		})
		awaitPolicy(t, r, "b.policies", hook.Ignore)
		// Without the first, the second is in effect.
		if err := r.client.Delete(t.Context(), newPolicy(t, "policies", "", "")); err != nil {
			t.Fatal(err)
		}
		awaitAccepted(t, r.client, "policies-2", "Accepted", `In effect for handler "b" of ExtensionConfig "policies"`)
		awaitPolicy(t, r, "b.policies", hook.Fail)
	})
	awaitPolicy(t, r, "b.policies", hook.Fail) // the policies are gone
}

func TestPoliciesThatAreWrong(t *testing.T) {
	r := start(t, nil)
	x := newExtension(t, "a")
	create(t, r.client, newConfig(t, "wrong-policies", x))
	p := newPolicy(t, "wrong-policies", "wrong-policies", "")
	create(t, r.client, p)
	awaitAccepted(t, r.client, p.Name, "Accepted", `In effect for ExtensionConfig "wrong-policies"`)
	awaitPolicy(t, r, "a.wrong-policies", hook.Ignore)

	for name, tc := range map[string]struct {
		reason  string
		change  func(*v1alpha1.ExtensionPolicySpec)
		message string
	}{
		"CEL that does not compile": {
			"a schema cannot say what CEL is",
			func(s *v1alpha1.ExtensionPolicySpec) {
				s.MatchConditions = []v1alpha1.MatchCondition{{Name: "half", Expression: "request.cluster =="}}
			},
			"spec.matchConditions[0].expression: Invalid value: line 1, column 19: Syntax error: ",
		},
		"CEL that is not a condition": {
			"a condition is true or false",
			func(s *v1alpha1.ExtensionPolicySpec) {
				s.MatchConditions = []v1alpha1.MatchCondition{{Name: "number", Expression: "1 + 1"}}
			},
			"spec.matchConditions[0].expression: Invalid value: must be true or false, and is of type int",
		},
		"selector that does not parse": {
			"the schema takes every operator",
			func(s *v1alpha1.ExtensionPolicySpec) {
				s.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a",
					Operator: "Near", Values: []string{"b"}}}}
			},
			`spec.objectSelector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			changePolicy(t, r.client, p.Name, func(s *v1alpha1.ExtensionPolicySpec) {
				s.ObjectSelector, s.MatchConditions = nil, nil
				tc.change(s)
			})
			eventually(t, "the policy is invalid", func() (string, bool) {
				got := &v1alpha1.ExtensionPolicy{}
				if err := r.client.Get(t.Context(), clientKey(p), got); err != nil {
					t.Fatal(err)
				}
				c := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.AcceptedCondition)
				return c.Message, c.Reason == "Invalid" && c.ObservedGeneration == got.Generation &&
					strings.HasPrefix(c.Message, tc.message) &&
					strings.HasSuffix(c.Message, "; its previous version stays in effect")
			})
			awaitPolicy(t, r, "a.wrong-policies", hook.Ignore)
		})
	}
	changePolicy(t, r.client, p.Name, func(s *v1alpha1.ExtensionPolicySpec) {
		s.ObjectSelector, s.MatchConditions, s.FailurePolicy = nil, nil, v1alpha1.FailurePolicyFail
	})
	awaitAccepted(t, r.client, p.Name, "Accepted", `In effect for ExtensionConfig "wrong-policies"`)
	awaitPolicy(t, r, "a.wrong-policies", hook.Fail)
}

func changePolicy(t testing.TB, c client.Client, name string, change func(*v1alpha1.ExtensionPolicySpec)) {
	t.Helper()
	for {
		p := &v1alpha1.ExtensionPolicy{}
		if err := c.Get(context.Background(), client.ObjectKey{Name: name}, p); err != nil {
			t.Fatal(err)
		}
		change(&p.Spec)
		err := c.Update(context.Background(), p)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
}

// A ready replica has the policies: a call never uses an extension's failure policy that the operator overrides.
func TestPoliciesHoldFromTheStart(t *testing.T) {
	first := start(t, nil)
	x := newExtension(t, "a")
	create(t, first.client, newConfig(t, "policy-start", x))
	create(t, first.client, newPolicy(t, "policy-start", "policy-start", ""))
	awaitCondition(t, first.client, "policy-start", discoveredCondition, metav1.ConditionTrue, "")
	awaitAccepted(t, first.client, "policy-start", "Accepted", `In effect for ExtensionConfig "policy-start"`)
	first.stop()

	for name, change := range map[string]func(*controllers.Config){"leader": nil, "read-only": func(c *controllers.Config) { c.ReadOnly = true }} {
		second := start(t, func(c *controllers.Config) {
			c.WatchFilter = filterOf(t)
			if change != nil {
				change(c)
			}
		})
		second.ready(t)
		e, ok := second.registry.Snapshot().Handler("a.policy-start")
		if !ok || e.Handler.FailurePolicy != hook.Ignore {
			t.Errorf("%s: when it is ready, the handler is %+v", name, e)
		}
		second.stop()
		if got := second.writes.all(); len(got) > 0 {
			t.Errorf("%s: nothing has changed, but it wrote %v", name, got)
		}
	}
}

// A cluster without the kind ExtensionPolicy has no policies, and replicas are ready without it; once installed, it is
// watched.
func TestPoliciesNeedNotBeInstalled(t *testing.T) {
	if apiServer == nil {
		t.Skipf("%s is not set", assetsVariable)
	}
	crds := filepath.Join("..", "..", "deploy", "crd")
	config, c := emptyServer(t, filepath.Join(crds, "runtime.cluster.x-k8s.io_extensionconfigs.yaml"))
	r := start(t, func(s *controllers.Config) { s.REST = config })
	r.client = c
	r.ready(t)
	x := newExtension(t, "a")
	create(t, c, newConfig(t, "no-policies", x))
	awaitCondition(t, c, "no-policies", discoveredCondition, metav1.ConditionTrue, "")
	if want := "install the CustomResourceDefinition of ExtensionPolicy in hookgate.dev, if you want policies"; strings.Count(r.log.String(), want) != 1 {
		t.Errorf("the log does not say once: %s", want)
	}
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{MaxTime: process.ServerPatience, Paths: []string{filepath.Join(crds, "hookgate.dev_extensionpolicies.yaml")}}); err != nil {
		t.Fatal(err)
	}
	create(t, c, newPolicy(t, "no-policies", "no-policies", ""))
	awaitAccepted(t, c, "no-policies", "Accepted", `In effect for ExtensionConfig "no-policies"`)
}

// emptyServer starts a separate API server with only the given CustomResourceDefinitions.
func emptyServer(t testing.TB, crds ...string) (*rest.Config, client.Client) {
	t.Helper()
	_, shared := connect(t)
	env := &envtest.Environment{BinaryAssetsDirectory: apiServer.BinaryAssetsDirectory,
		CRDInstallOptions: envtest.CRDInstallOptions{Paths: crds, ErrorIfPathMissing: true,
			MaxTime: process.ServerPatience},
		ControlPlaneStartTimeout: process.ServerPatience, ControlPlaneStopTimeout: process.ServerPatience}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	c, err := client.New(config, client.Options{Scheme: shared.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return config, c
}

// stubs is an extension built on the generated stubs, with one handler.
type stubs struct {
	hooksv1alpha1.UnimplementedDiscoveryServiceServer
	hooksv1alpha1.UnimplementedLifecycleHooksServiceServer
}

func (stubs) Discovery(context.Context, *hooksv1alpha1.DiscoveryRequest) (*hooksv1alpha1.DiscoveryResponse, error) {
	return &hooksv1alpha1.DiscoveryResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
		Handlers: []*hooksv1alpha1.ExtensionHandler{{
			Name: "a", RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate"},
		}},
	}, nil
}

// An extension is discovered and called over gRPC, by the leader and by followers, as long as a policy says so.
func TestProtocolOfAPolicy(t *testing.T) {
	pair := certificates.New(t)
	certificate := certificates.Of(t, pair)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
	hooksv1alpha1.RegisterDiscoveryServiceServer(server, stubs{})
	hooksv1alpha1.RegisterLifecycleHooksServiceServer(server, stubs{})
	go func() { _ = server.Serve(l) }() // until it is stopped
	t.Cleanup(server.Stop)

	r := start(t, nil)
	follower := start(t, func(c *controllers.Config) { c.ReadOnly = true })
	config := newConfig(t, "protocol", nil)
	config.Spec.ClientConfig = runtimev1.ClientConfig{URL: "https://" + l.Addr().String(), CABundle: pair.CAPEM}
	create(t, r.client, config)
	awaitCondition(t, r.client, "protocol", discoveredCondition, metav1.ConditionFalse,
		"discover handlers: the server speaks gRPC: set protocol GRPC")

	p := newPolicy(t, "protocol", "protocol", "")
	p.Spec.FailurePolicy, p.Spec.Protocol = "", v1alpha1.ProtocolGRPC
	create(t, r.client, p)
	awaitCondition(t, r.client, "protocol", discoveredCondition, metav1.ConditionTrue, "")
	awaitAccepted(t, r.client, "protocol", "Accepted", `In effect for ExtensionConfig "protocol"`)
	for name, one := range map[string]*replica{"leader": r, "follower": follower} {
		eventually(t, name+" calls it in gRPC", func() (string, bool) {
			e, ok := one.registry.Snapshot().Handler("a.protocol")
			if !ok {
				return "not served", false
			}
			return string(e.Registration.ClientConfig.Protocol), e.Registration.ClientConfig.Protocol == registry.GRPC
		})
	}
	if err := r.client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, r.client, "protocol", discoveredCondition, metav1.ConditionFalse,
		"discover handlers: the server speaks gRPC: set protocol GRPC")
}
