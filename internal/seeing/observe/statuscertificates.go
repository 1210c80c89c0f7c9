// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/network/certs"
	"github.com/hookgate/hookgate/registry"
)

// What a certificate is to an extension.
const (
	ofLeaf   = "Leaf"
	ofChain  = "Chain"
	ofBundle = "CABundle"
)

// certificateLabels has what metrics call these.
var certificateLabels = map[string]string{ofLeaf: "leaf", ofChain: "chain", ofBundle: "caBundle"}

// certify sets the certificates of an extension that is called with cc, and says which of them are near their end.
func (r *Reporter) certify(x *status.Extension, cc registry.ClientConfig, now time.Time) {
	if r.Certificates == nil || cc.URL == "" {
		return
	}
	known := r.Certificates(cc)
	add := func(of string, e certs.Expiry) *status.Certificate {
		x.Certificates = append(x.Certificates, status.Certificate{Of: of, Subject: e.Subject, NotAfter: e.NotAfter})
		return &x.Certificates[len(x.Certificates)-1]
	}
	var near []string
	if e := known.Leaf; !e.NotAfter.IsZero() {
		add(ofLeaf, e)
		if e.Near(now) {
			near = append(near, e.Text(now)+": its certificate "+e.Subject)
		}
	}
	if e := known.Chain; !e.NotAfter.IsZero() {
		add(ofChain, e)
		if e.Near(now) {
			near = append(near, e.Text(now)+": the authority of its certificate, "+e.Subject)
		}
	}
	if last := certs.Last(known.Bundle); !last.NotAfter.IsZero() {
		of := add(ofBundle, last)
		of.Certificates = len(known.Bundle)
		for _, e := range known.Bundle {
			if e.Expired(now) {
				of.Expired = append(of.Expired, e.Subject)
			}
		}
		if said := bundleText(x, of, last, known.Chain, now); said != "" {
			near = append(near, said)
		}
	}
	x.Expiring = strings.Join(near, "; ")
}

// bundleText says what is wrong with a caBundle: that none of its certificates will be valid soon, or that one has
// expired that the server may need, which was not seen with a valid one.
func bundleText(x *status.Extension, of *status.Certificate, last, chain certs.Expiry, now time.Time) string {
	switch {
	case last.Near(now) && last == chain:
		return "" // said of it already
	case last.Near(now) && of.Certificates == 1:
		return last.Text(now) + ": the certificate in its caBundle, " + last.Subject
	case last.Near(now):
		return last.Text(now) + ": the last certificate in its caBundle, " + last.Subject
	case len(of.Expired) > 0 && chain.NotAfter.IsZero() && strings.Contains(x.Error, "unknown authority"):
		return "in its caBundle, these have expired: " + text.Join(of.Expired, ", ", limits.Problems)
	}
	return ""
}

// expiringNotice names the extensions whose certificates are near their end. Its Text is empty if there are none.
func expiringNotice(extensions []status.Extension) status.Notice {
	var names []string
	for i := range extensions {
		if extensions[i].Expiring != "" {
			names = append(names, extensions[i].Name)
		}
	}
	if len(names) == 0 {
		return status.Notice{}
	}
	of := text.Join(names, ", ", limits.Problems)
	return status.Notice{Name: "certificates", Text: "those of " + of + " have expired or are near their end"}
}
