// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	certificateExpiryName = "hookgate_certificate_expiry_timestamp_seconds"
	certificateExpiryHelp = "Time, in seconds since the epoch, at which a certificate that the gateway uses expires. " +
		`The label certificate is "serving" (the certificate that callers see), "client" (the certificate that extensions ` +
		`see), "webhook" (the certificate that the API server sees) or "callers" (the CA certificate in ca.crt that ` +
		`expires first, if callers need a certificate). A certificate that is not in use has no series.`
)

// certificateExpiry collects when certificates expire. It is safe for concurrent use.
type certificateExpiry struct {
	description *prometheus.Desc

	mu       sync.Mutex
	notAfter map[string]func() time.Time // by name
}

func newCertificateExpiry(d *definer) *certificateExpiry {
	labels := []string{"certificate"}
	c := &certificateExpiry{
		description: prometheus.NewDesc(certificateExpiryName, certificateExpiryHelp, labels, nil),
		notAfter:    map[string]func() time.Time{},
	}
	d.add("gauge", certificateExpiryName, certificateExpiryHelp, labels, c)
	return c
}

// Certificate makes the metrics say when a certificate expires. notAfter must be safe for concurrent
// use; the zero time stands for no certificate.
func (m *Metrics) Certificate(name string, notAfter func() time.Time) {
	m.certificates.mu.Lock()
	defer m.certificates.mu.Unlock()
	m.certificates.notAfter[name] = notAfter
}

// Describe implements prometheus.Collector.
func (c *certificateExpiry) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- c.description
}

// Collect implements prometheus.Collector.
func (c *certificateExpiry) Collect(collected chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, notAfter := range c.notAfter {
		if at := notAfter(); !at.IsZero() {
			collected <- prometheus.MustNewConstMetric(c.description, prometheus.GaugeValue, float64(at.Unix()), name)
		}
	}
}
