// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/printers"
	"github.com/hookgate/hookgate/internal/network/certs"
	"github.com/hookgate/hookgate/registry"
)

// TestStatusOfCertificates checks what the status, its messages and the metrics say of the certificates of an extension,
// whether it is registered or was never discovered.
func TestStatusOfCertificates(t *testing.T) {
	f := newReported(t)
	now := time.Now().UTC().Truncate(time.Second)
	const day = 24 * time.Hour
	ends := func(subject string, days int) certs.Expiry {
		at := now.Add(time.Duration(days) * day)
		return certs.Expiry{Subject: "CN=" + subject, NotBefore: at.Add(-365 * day), NotAfter: at}
	}
	at := func(days int) string { return now.Add(time.Duration(days) * day).Format(time.RFC3339) }
	reg, _ := f.Registry.(*registry.Registry)
	reg.SetUndiscovered([]registry.Undiscovered{{Name: "down", Default: hook.Ignore, ClientConfig: registry.ClientConfig{URL: "https://down.example"}}})
	f.Observer.Discovered("down", "https://down.example", "Unreachable", false, errors.New("certificate not trusted: signed by an unknown authority"))
	f.observed.metrics.Report(&f.Reporter)
	for name, tt := range map[string]struct {
		known  extension.Certificates
		acme   string            // what its message says
		down   string            // and that of an extension that was never discovered
		series map[string]string // days left, by the label
	}{
		"before any call":         {extension.Certificates{Bundle: []certs.Expiry{ends("ca", 200)}}, "", "", map[string]string{"caBundle": at(200)}},
		"nothing is near":         {extension.Certificates{Leaf: ends("acme", 31), Chain: ends("ca", 200)}, "", "", map[string]string{"leaf": at(31), "chain": at(200)}},
		"leaf":                    {extension.Certificates{Leaf: ends("acme", 29)}, "expires " + at(29) + ": its certificate CN=acme", "", map[string]string{"leaf": at(29)}},
		"expired":                 {extension.Certificates{Leaf: ends("acme", -1)}, "expired " + at(-1) + ": its certificate CN=acme", "", map[string]string{"leaf": at(-1)}},
		"authority":               {extension.Certificates{Chain: ends("ca", 5), Bundle: []certs.Expiry{ends("ca", 5)}}, "expires " + at(5) + ": the authority of its certificate, CN=ca", "", map[string]string{"chain": at(5), "caBundle": at(5)}},
		"caBundle":                {extension.Certificates{Bundle: []certs.Expiry{ends("ca", -5)}}, "expired " + at(-5) + ": the certificate in its caBundle, CN=ca", "", map[string]string{"caBundle": at(-5)}},
		"an old one, and the new": {extension.Certificates{Chain: ends("new", 300), Bundle: []certs.Expiry{ends("old", -5), ends("new", 300)}}, "", "", map[string]string{"chain": at(300), "caBundle": at(300)}},
		"an old one in use": {
			extension.Certificates{Bundle: []certs.Expiry{ends("old", -5), ends("new", 300)}}, "",
			"in its caBundle, these have expired: CN=old", map[string]string{"caBundle": at(300)},
		},
		"several, all near": {extension.Certificates{Bundle: []certs.Expiry{ends("old", 3), ends("new", 4)}}, "expires " + at(4) + ": the last certificate in its caBundle, CN=new", "", map[string]string{"caBundle": at(4)}},
	} {
		f.Certificates = func(cc registry.ClientConfig) extension.Certificates { return tt.known }
		g := f.Gateway()
		var acme, down *status.Extension
		for i := range g.Extensions {
			switch x := &g.Extensions[i]; x.Name {
			case "acme":
				acme = x
			case "down":
				down = x
			}
		}
		if acme.Expiring != tt.acme || !strings.Contains(printers.Message(acme), tt.acme) {
			t.Errorf("%s: acme: %q, message %q, want %q", name, acme.Expiring, printers.Message(acme), tt.acme)
		}
		if want := tt.acme + tt.down; down.Expiring != want {
			t.Errorf("%s: down: %q, want %q", name, down.Expiring, want)
		}
		var notices []status.Notice
		switch {
		case tt.acme != "":
			notices = []status.Notice{{Name: "certificates", Text: "those of acme, down have expired or are near their end"}}
		case tt.down != "":
			notices = []status.Notice{{Name: "certificates", Text: "those of down have expired or are near their end"}}
		}
		if diff := cmp.Diff(notices, g.Notices); diff != "" {
			t.Errorf("%s: notices (-want +got):\n%s", name, diff)
		}
		text, err := formatted(f.observed.series, "hookgate_extension_certificate_expiry_timestamp_seconds")
		for label, at := range tt.series {
			moment, _ := time.Parse(time.RFC3339, at)
			want := fmt.Sprintf("hookgate_extension_certificate_expiry_timestamp_seconds{certificate=%q,extension=\"acme\"} %g\n", label, float64(moment.Unix()))
			if err != nil || !strings.Contains(text, want) {
				t.Errorf("%s: metrics\n%s\n(%v) lack\n%s", name, text, err, want)
			}
		}
		if n := strings.Count(text, `extension="acme"`); n != len(tt.series) {
			t.Errorf("%s: %d series, want %d:\n%s", name, n, len(tt.series), text)
		}
	}
	var text strings.Builder
	f.Certificates = func(registry.ClientConfig) extension.Certificates {
		return extension.Certificates{Leaf: ends("acme", 29), Bundle: []certs.Expiry{ends("old", -5), ends("new", 300)}}
	}
	one, _ := f.Extension("acme")
	if err := printers.Extension(&text, one); err != nil || !strings.Contains(text.String(), "; of 2 certificates, this one expires last; expired: CN=old") {
		t.Errorf("described as %s (%v)", &text, err)
	}
}
