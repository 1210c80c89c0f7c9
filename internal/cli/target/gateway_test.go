// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/hookgate/hookgate/internal/network/tunnel/tunneltest"
)

// TestAddressesOfAPod checks what the command line of a Pod says about its addresses.
func TestAddressesOfAPod(t *testing.T) {
	for name, tt := range map[string]struct {
		args                []string
		env                 map[string]string
		diagnostics, server string
	}{
		"Defaults":    {nil, nil, "http://127.0.0.1:8443", "https://hookgate.ns.svc:9443"},
		"Everywhere":  {[]string{"--diagnostics-address=:8444", "--http-address=:9444"}, nil, "https://hookgate.ns.svc:8444", "https://hookgate.ns.svc:9444"},
		"Loopback":    {[]string{"--diagnostics-address", "localhost:8444"}, nil, "http://127.0.0.1:8444", "https://hookgate.ns.svc:9443"},
		"Insecure":    {[]string{"--insecure-diagnostics", "--diagnostics-address=:8444"}, nil, "http://127.0.0.1:8444", "https://hookgate.ns.svc:9443"},
		"NotInsecure": {[]string{"--insecure-diagnostics=false", "--diagnostics-address=:8444"}, nil, "https://hookgate.ns.svc:8444", "https://hookgate.ns.svc:9443"},
		"LastWins":    {[]string{"--diagnostics-address=:1", "--diagnostics-address=:2"}, nil, "https://hookgate.ns.svc:2", "https://hookgate.ns.svc:9443"},
		"Environment": {nil, map[string]string{"HOOKGATE_DIAGNOSTICS_ADDRESS": ":3"}, "https://hookgate.ns.svc:3", "https://hookgate.ns.svc:9443"},
		"Nonsense":    {[]string{"--diagnostics-address=x"}, nil, "http://127.0.0.1:8443", "https://hookgate.ns.svc:9443"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := tunneltest.Pod("ns", "a", true, 0, tt.args...)
			for key, value := range tt.env {
				pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: key, Value: value})
			}
			pod.Spec.Containers = append([]corev1.Container{{Name: "other", Args: []string{"--diagnostics-address=:9"}}}, pod.Spec.Containers...)
			if got := diagnosticsOf(&pod); got != tt.diagnostics {
				t.Errorf("diagnostics %s, want %s", got, tt.diagnostics)
			}
			if got := serverOf(&pod); got != tt.server {
				t.Errorf("server %s, want %s", got, tt.server)
			}
		})
	}
}
