// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/internal/codec"
	"github.com/hookgate/hookgate/internal/convert"
	"github.com/hookgate/hookgate/internal/extension"
	"github.com/hookgate/hookgate/test/hookversions"
)

const deprecatedCondition = "DeprecatedHookVersions"

// TestDeprecatedHookVersions: an ExtensionConfig reports a handler of a deprecated hook version until the extension
// implements another. Cluster API's hooks have one version, which is not deprecated, so this uses the tests' own hooks.
func TestDeprecatedHookVersions(t *testing.T) {
	hooks := hookversions.New()
	var version atomic.Pointer[string]
	version.Store(new("v1alpha1"))
	var asked atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/"+hookversions.Group+"/v1/discovery" {
			http.NotFound(w, r)
			return
		}
		type object = map[string]any
		_ = json.NewEncoder(w).Encode(object{ // the caller may have left
			"apiVersion": hookversions.Group + "/v1", "kind": "DiscoveryResponse", "status": "Success",
			"handlers": []object{
				{"name": "old", "requestHook": object{"apiVersion": hookversions.Group + "/" + *version.Load(), "hook": hookversions.BeforeNodeDrain}},
				{"name": "new", "requestHook": object{"apiVersion": hookversions.Group + "/v1", "hook": hookversions.BeforeNodeDrain}},
			},
		})
	}))
	t.Cleanup(server.Close)
	losses := convert.NewLosses(nil)
	with := func(losses *convert.Losses) func(*controllers.Config) {
		return func(c *controllers.Config) {
			transports := extension.NewProtocols(extension.Config{Catalog: hooks, Codec: codec.New(hooks),
				LookupHost: lookup})
			t.Cleanup(transports.Close)
			c.Catalog, c.Discoverer, c.Losses, c.Resync = hooks, transports, losses, 50*time.Millisecond
		}
	}
	r := start(t, with(losses))
	config := newConfig(t, "deprecated", nil)
	config.Spec.ClientConfig = runtimev1.ClientConfig{
		URL: server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	create(t, r.client, config)
	const text = `handler "old" implements hooks.test.hookgate.dev/v1alpha1, which is deprecated since v0.4.0 of the gateway: it should implement hooks.test.hookgate.dev/v1`
	got := awaitCondition(t, r.client, "deprecated", deprecatedCondition, metav1.ConditionTrue, text)
	if c := meta.FindStatusCondition(got.Status.Conditions, deprecatedCondition); c.Reason != "Deprecated" ||
		c.Message != text {
		t.Errorf("the condition is %+v", c)
	}
	awaitEventOf(t, r, corev1.EventTypeWarning, "deprecated", "Deprecated", text)

	// Losses between versions of a hook are reported, too.
	losses.Record("deprecated", "old", []string{"graceSeconds"})
	losses.Record("deprecated", "new", []string{"urgent"})
	awaitLossy(t, r, "deprecated", "new (hooks.test.hookgate.dev/v1) urgent; old (hooks.test.hookgate.dev/v1alpha1) graceSeconds")
	r.stop()

	again := start(t, with(convert.NewLosses(nil)))
	again.ready(t)
	n := asked.Load()
	eventually(t, "ten rounds", func() (string, bool) { now := asked.Load() - n; return strconv.FormatInt(now, 10), now >= 10 })
	if written := again.writes.all(); len(written) > 0 {
		t.Errorf("after a restart, it wrote %v", written)
	}
	version.Store(new("v1beta1"))
	eventually(t, "the condition is gone", func() (string, bool) {
		conditions := get(t, again.client, "deprecated").Status.Conditions
		return strings.TrimSpace(fmt.Sprint(conditions)),
			meta.FindStatusCondition(conditions, deprecatedCondition) == nil
	})
	awaitLossy(t, again, "deprecated", "new (hooks.test.hookgate.dev/v1) urgent")
}
