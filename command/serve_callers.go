// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/auth"
	"github.com/hookgate/hookgate/internal/calls/auth/tokenreview"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/certs"
)

// callersOptions are the flags about who may call.
type callersOptions struct {
	file      string
	names     []string
	anonymous bool
	tokens    bool
	audiences []string
	limits    auth.Limits
}

func (o *callersOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.file, "callers", "",
		"file with the callers that may authenticate by certificates or static tokens, and the hooks that each may "+
			"call; reloaded when it changes")
	f.StringSliceVar(&o.names, "allowed-client-names", nil,
		"names of client certificates that may call every hook: a common name, or a DNS name or URI of the subject "+
			"alternative names; default without --callers: all names in certificates that ca.crt in --cert-dir has "+
			"signed")
	f.BoolVar(&o.tokens, "kubernetes-tokens", false,
		"accept bearer tokens, such as service account tokens, of the cluster that has the ExtensionConfigs, if "+
			"that cluster allows the token's user to post to the path of the hook")
	f.StringSliceVar(&o.audiences, "kubernetes-token-audiences", nil,
		"audiences to accept: a token must have one of them; default: the API server's own audiences")
	f.IntVar(&o.limits.Rate, "max-calls-per-second", limits.CallerRate,
		"maximum number of calls per second from one authenticated caller, or from one host if callers are not "+
			"authenticated; 0 means no limit")
	f.IntVar(&o.limits.InFlight, "max-calls-in-flight", limits.CallerCalls,
		"maximum number of calls in flight from one authenticated caller, or from one host if callers are not "+
			"authenticated; 0 means no limit")
	f.BoolVar(&o.anonymous, "allow-anonymous-callers", false,
		"start on an address that is not loopback even if nothing authenticates callers: everyone who can "+
			"connect can then read the answers of extensions, and make them act on any Cluster")
}

// check returns a usage error unless the flags fit together and suit the source of registrations.
func (o *callersOptions) check(noCluster bool) error {
	switch {
	case o.limits.Rate < 0 || o.limits.InFlight < 0:
		return cmdline.Usagef("--max-calls-per-second and --max-calls-in-flight: want 0 or more, got %d and %d",
			o.limits.Rate, o.limits.InFlight)
	case o.tokens && noCluster:
		return cmdline.Usagef("--kubernetes-tokens: without a cluster, no API server can check tokens; list callers with " +
			"--callers")
	case len(o.audiences) > 0 && !o.tokens:
		return cmdline.Usagef("--kubernetes-token-audiences: tokens are checked only with --kubernetes-tokens; give both")
	case slices.Contains(o.audiences, ""):
		return cmdline.Usagef("--kubernetes-token-audiences: an audience is empty")
	}
	return nil
}

// gate returns the gate of both fronts, and the file of callers to follow, if there is one. cluster says how to reach
// the API server; it is nil without a cluster.
func (o *callersOptions) gate(
	certificates *certs.Server, cluster *rest.Config, hooks *catalog.Catalog, logger *slog.Logger,
) (*auth.Gate, *auth.CallersFile, error) {
	if slices.Contains(o.names, "") {
		return nil, nil, cmdline.Usagef("--allowed-client-names: a name is empty")
	}
	if len(o.names) > 0 && !certificates.AsksForCertificates() {
		return nil, nil, cmdline.Usagef("--allowed-client-names: --cert-dir has no ca.crt to check client certificates " +
			"with; put one there")
	}
	config := auth.Config{Certificates: certificates, Names: o.names, Limits: o.limits}
	if o.file != "" {
		var err error
		if config.Callers, err = auth.OpenCallers(o.file, hooks, logger); err != nil {
			return nil, nil, fmt.Errorf("read --callers: %w", err)
		}
	}
	if o.tokens {
		client, err := rest.HTTPClientFor(cluster)
		if err != nil {
			return nil, nil, fmt.Errorf("--kubernetes-tokens: %w", err)
		}
		if config.Reviewer, err = tokenreview.New(cluster, client, o.audiences); err != nil {
			return nil, nil, fmt.Errorf("--kubernetes-tokens: %w", err)
		}
	}
	return auth.NewGate(config), config.Callers, nil
}

// checkCallers returns an error of usage if callers that nothing authenticates can reach the gateway.
func (o *serveOptions) checkCallers(gate *auth.Gate) error {
	if gate.Required() || o.callers.anonymous {
		return nil
	}
	for _, a := range []struct{ flag, address string }{
		{"--http-address", o.httpAddress}, {"--grpc-address", o.grpcAddress},
	} {
		if a.address != "" && !cmdline.IsLoopback(a.address) {
			return cmdline.Usagef("%s %s is not on loopback, and nothing authenticates callers: put the ca.crt that signs "+
				"their certificates into --cert-dir, list the callers in a file with --callers, or check tokens of the "+
				"cluster with --kubernetes-tokens; with --allow-anonymous-callers, everyone who can connect may call "+
				"every hook", a.flag, a.address)
		}
	}
	return nil
}
