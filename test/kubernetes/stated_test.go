// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/extensionconfig"
	"github.com/hookgate/hookgate/test/certificates"
)

// stating is an extension built on the generated stubs. Its handlers, a and so on, state the versions of objects that
// they understand.
type stating struct {
	hooksv1alpha1.UnimplementedDiscoveryServiceServer
	hooksv1alpha1.UnimplementedLifecycleHooksServiceServer
	versions  atomic.Pointer[[]string] // by handler
	discovery atomic.Int64             // how often it was asked
	server    *grpc.Server
	url       string
	ca        []byte
}

func (s *stating) Discovery(context.Context, *hooksv1alpha1.DiscoveryRequest) (*hooksv1alpha1.DiscoveryResponse, error) {
	s.discovery.Add(1)
	answer := &hooksv1alpha1.DiscoveryResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}
	for i, v := range *s.versions.Load() {
		answer.Handlers = append(answer.Handlers, &hooksv1alpha1.ExtensionHandler{
			Name: string(rune('a' + i)), ClusterApiVersion: v,
			RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1",
				Hook: "BeforeClusterCreate"},
		})
	}
	return answer, nil
}

func (*stating) BeforeClusterCreate(context.Context,
	*hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
	return &hooksv1alpha1.BeforeClusterCreateResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}, nil
}

func (s *stating) state(versions ...string) { s.versions.Store(&versions) }

func newStating(t testing.TB, versions ...string) *stating {
	t.Helper()
	pair := certificates.New(t)
	certificate := certificates.Of(t, pair)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stating{server: grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&certificate))),
		url: "https://" + l.Addr().String(), ca: pair.CAPEM}
	s.state(versions...)
	hooksv1alpha1.RegisterDiscoveryServiceServer(s.server, s)
	hooksv1alpha1.RegisterLifecycleHooksServiceServer(s.server, s)
	go func() { _ = s.server.Serve(l) }() // until it is stopped
	t.Cleanup(s.server.Stop)
	return s
}

// register creates the ExtensionConfig, and the policy that selects gRPC.
func (s *stating) register(t testing.TB, r *replica, name string) {
	t.Helper()
	config := newConfig(t, name, nil)
	config.Spec.ClientConfig = runtimev1.ClientConfig{URL: s.url, CABundle: s.ca}
	p := newPolicy(t, name, name, "")
	p.Spec.FailurePolicy, p.Spec.Protocol = "", v1alpha1.ProtocolGRPC
	create(t, r.client, p)
	create(t, r.client, config)
}

// understood returns which objects the registered handlers of a replica understand.
func understood(r *replica) string {
	var all []string
	for _, e := range r.registry.Snapshot().All() {
		all = append(all, e.Handler.Name+"="+e.Handler.ClusterAPIVersion)
	}
	return strings.Join(all, " ")
}

func awaitUnderstood(t testing.TB, name string, r *replica, want string) {
	t.Helper()
	eventually(t, name+" serves "+want, func() (string, bool) { got := understood(r); return got, got == want })
}

func awaitAnnotation(t testing.TB, r *replica, name, want string) {
	t.Helper()
	eventually(t, "the annotation is "+want, func() (string, bool) {
		got, ok := get(t, r.client, name).Annotations[extensionconfig.StatedVersionsAnnotation]
		return got, got == want && ok == (want != "")
	})
}

// TestStatedVersions: an extension's statement of the objects that it understands reaches replicas that never discover
// it, and outlives those that did.
func TestStatedVersions(t *testing.T) {
	elected := func(c *controllers.Config) { c.LeaderElection, c.Resync = election(t), 50*time.Millisecond }
	leader := start(t, elected)
	leader.ready(t)
	x := newStating(t, "v1beta1", "")
	x.register(t, leader, "stated")
	awaitAnnotation(t, leader, "stated", `{"a":"v1beta1"}`)
	awaitUnderstood(t, "the leader", leader, "a=v1beta1 b=")
	follower := start(t, elected)
	reader := start(t, func(c *controllers.Config) { c.ReadOnly = true })
	follower.ready(t)
	reader.ready(t)
	replicas := map[string]*replica{"the leader": leader, "the follower": follower, "the reader": reader}
	for name, r := range replicas {
		awaitUnderstood(t, name, r, "a=v1beta1 b=")
	}

	x.state("v1beta2", "v1beta1", "v1beta1")
	awaitAnnotation(t, leader, "stated", `{"a":"v1beta2","b":"v1beta1","c":"v1beta1"}`)
	for name, r := range replicas {
		awaitUnderstood(t, name, r, "a=v1beta2 b=v1beta1 c=v1beta1")
	}
	t.Run("nothing is written while nothing changes", func(t *testing.T) {
		eventually(t, "the status has all handlers", func() (string, bool) {
			n := len(get(t, leader.client, "stated").Status.Handlers)
			return strconv.Itoa(n), n == 3
		})
		rounds := func(most int64) {
			asked := x.discovery.Load()
			eventually(t, "more rounds", func() (string, bool) {
				n := x.discovery.Load() - asked
				return strconv.FormatInt(n, 10), n >= most
			})
		}
		rounds(3) // what was written last has been read again
		marked := len(leader.writes.all())
		rounds(10)
		if more := leader.writes.since(marked); len(more) > 0 {
			t.Errorf("written: %s", more)
		}
		for name, r := range map[string]*replica{"the follower": follower, "the reader": reader} {
			if all := r.writes.all(); len(all) != 0 {
				t.Errorf("%s has written: %s", name, all)
			}
		}
	})
	t.Run("the leader repairs", func(t *testing.T) {
		for _, wrong := range []string{"", "garbage", `{"a":"v1beta1"}`} {
			update(t, leader.client, "stated", func(c *runtimev1.ExtensionConfig) {
				if delete(c.Annotations, extensionconfig.StatedVersionsAnnotation); wrong != "" {
					metav1.SetMetaDataAnnotation(&c.ObjectMeta, extensionconfig.StatedVersionsAnnotation, wrong)
				}
			})
			awaitAnnotation(t, leader, "stated", `{"a":"v1beta2","b":"v1beta1","c":"v1beta1"}`)
		}
	})

	x.server.Stop()
	awaitCondition(t, leader.client, "stated", discoveredCondition, metav1.ConditionFalse, "")
	for _, r := range replicas {
		r.stop()
	}
	t.Run("a restart while the extension is away", func(t *testing.T) {
		again := start(t, func(c *controllers.Config) { c.WatchFilter = "teststatedversions" })
		again.ready(t)
		if got, want := understood(again), "a=v1beta2 b=v1beta1 c=v1beta1"; got != want {
			t.Errorf("when it is ready, it serves %s, want %s", got, want)
		}
	})
	t.Run("a wrong annotation without a leader", func(t *testing.T) {
		again := start(t, func(c *controllers.Config) { c.WatchFilter, c.ReadOnly = "teststatedversions", true })
		update(t, again.client, "stated", func(c *runtimev1.ExtensionConfig) {
			c.Annotations[extensionconfig.StatedVersionsAnnotation] = `{"a":"v9","b":"v1beta1"}`
		})
		awaitUnderstood(t, "the reader", again, "a= b=v1beta1 c=")
		update(t, again.client, "stated", func(c *runtimev1.ExtensionConfig) { c.Annotations["x"] = "y" })
		eventually(t, "the log names it", func() (string, bool) {
			return again.log.String(), strings.Contains(strings.ReplaceAll(again.log.String(), `\`, ""),
				`handler "a": "v9" is neither "v1beta1" nor "v1beta2"`)
		})
		if n := strings.Count(again.log.String(), "annotation is invalid; its invalid entries are ignored"); n != 1 {
			t.Errorf("the log says %d times that the annotation is wrong", n)
		}
	})
}

// TestStatedVersionsAreRemoved: the annotation is removed once nothing is stated.
func TestStatedVersionsAreRemoved(t *testing.T) {
	r := start(t, func(c *controllers.Config) { c.Resync = 50 * time.Millisecond })
	x := newStating(t, "v1beta1")
	x.register(t, r, "unstated")
	awaitAnnotation(t, r, "unstated", `{"a":"v1beta1"}`)
	x.state("")
	awaitAnnotation(t, r, "unstated", "")
	awaitUnderstood(t, "the leader", r, "a=")
}

// TestStatedVersionsComeBeforeHandlers: every state of the ExtensionConfig that a follower could see has a handler only
// with its stated version, so no handler is called with objects that it does not understand.
func TestStatedVersionsComeBeforeHandlers(t *testing.T) {
	r := start(t, func(c *controllers.Config) { c.Resync = 20 * time.Millisecond })
	x := newStating(t, "v1beta1")
	x.register(t, r, "stated-first")
	awaitCondition(t, r.client, "stated-first", discoveredCondition, metav1.ConditionTrue, "")

	watching, err := client.NewWithWatch(apiServer.Config, client.Options{Scheme: r.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	events, err := watching.Watch(t.Context(), &runtimev1.ExtensionConfigList{},
		client.MatchingFields{"metadata.name": "stated-first"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	late := time.After(patience)
	const last = 6
	for n := 1; n < last; {
		select {
		case event := <-events.ResultChan():
			config, ok := event.Object.(*runtimev1.ExtensionConfig)
			if !ok {
				t.Fatalf("the watch ended: %v", event)
			}
			stated, errs := extensionconfig.StatedVersions(config)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			for _, h := range config.Status.Handlers {
				if name := strings.TrimSuffix(h.Name, ".stated-first"); stated[name] != "v1beta1" {
					t.Errorf("there is handler %s, and the annotation says %v", name, stated)
				}
			}
			if len(config.Status.Handlers) == n {
				n++
				x.state(slices.Repeat([]string{"v1beta1"}, n)...)
			}
		case <-late:
			t.Fatalf("not within %s: %d handlers", patience, n)
		}
	}
}
