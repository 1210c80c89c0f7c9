// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/seeing/console"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// provided is what a gateway knows whose extension makes infrastructure.
type provided struct{ console.Source }

func (provided) Gateway() *status.Gateway {
	return &status.Gateway{Version: "v1.2.3", Now: time.Now(), Extensions: []status.Extension{
		{Name: "rack", State: status.Up, Handlers: []status.Handler{{Name: "machines.rack", Hook: "ReconcileMachine"}}},
	}}
}

func (provided) History(string, string, activity.Range) *status.History { return new(status.History) }

// TestInfrastructureIsAccessible examines the page of infrastructure as TestConsoleIsAccessible does the others, with
// names as wide as a telephone, and a machine that fails.
func TestInfrastructureIsAccessible(t *testing.T) {
	axe, err := os.ReadFile(process.Program(t, "HOOKGATE_AXE"))
	if err != nil {
		t.Fatal(err)
	}
	since, wanted := time.Now().Add(-time.Hour), 3
	object := func(name, state string, instances int) status.InfrastructureObject {
		return status.InfrastructureObject{
			Namespace: longNamespace, Name: name, Cluster: "c", Class: "rack", State: state, Since: &since, Instances: instances, Objects: 1,
		}
	}
	failing := object(longExtension, "Provisioning", 0)
	failing.Failure = &status.FailedCall{Hook: "ReconcileMachine", Reason: "CallFailed", Message: "the cloud does not answer", Since: since}
	pool := object("pool", "Scaling", 1)
	pool.Wanted = &wanted
	s := &status.Infrastructure{
		Now: time.Now(), Clusters: []status.InfrastructureObject{object("c", "Ready", 1)}, Pools: []status.InfrastructureObject{pool},
		Machines: []status.InfrastructureObject{failing, object("m", "Ready", 1)},
	}
	server := httptest.NewServer(console.New(provided{}, func() net.Addr { return nil },
		func(context.Context) (*status.Infrastructure, error) { return s, nil }))
	t.Cleanup(server.Close)
	f := &consoleFixture{gateway: &gateway{diagnostics: server.URL}, browser: startBrowser(t, certificates.New(t))}
	f.open(t, "/")
	f.browser.run(t, "follow the link", chromedp.Click(chromedp.CSS(`nav a[href="/infrastructure/"]`)), chromedp.WaitVisible(chromedp.CSS("#table-machines")))
	f.await(t, "what fails comes first", `document.querySelector("#table-machines tbody tr").textContent.includes("ReconcileMachine failing")`)
	f.browser.run(t, "load axe-core", chromedp.Evaluate[chromedp.Void](string(axe)+";0"))
	for _, colours := range []string{"light", "dark"} {
		for _, width := range []int64{desktopWidth, tabletWidth, phoneWidth} {
			name := fmt.Sprintf("infrastructure %s %d", colours, width)
			f.view(t, colours, width)
			f.examine(t, name)
			f.browser.fits(t, name, "main, header, footer")
		}
	}
	f.clean(t)
}
