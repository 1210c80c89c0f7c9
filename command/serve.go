// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/contract/openapi"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/internal/sources/sidecar"
	machinescommand "github.com/hookgate/hookgate/machines/command"
)

// serveOptions are the flags of hookgate serve.
type serveOptions struct {
	versions *hookversion.Converter

	extensionConfigs  string
	stateDir          string
	sidecar           string
	httpAddress       string
	grpcAddress       string
	certDir           string
	selfCertificates  []string
	resync            time.Duration
	connectionAge     time.Duration
	callerAge         time.Duration
	preferHTTP2       bool
	allowedHosts      []string
	gatewayID         string
	shutdownDelay     time.Duration
	shutdownTimeout   time.Duration
	openapi           bool
	logFormat         string
	logLevel          string
	diagnostics       diagnosticsOptions
	tls               tlsOptions
	callers           callersOptions
	clientCertificate clientCertificateOptions
	webhooks          webhookOptions
	cluster           clusterOptions
	tracing           tracingOptions
	memory            memoryOptions
	recording         recordingOptions
	dev               devOptions
	machines          machinescommand.Options
	machinesAlone     bool // for hookgate machines, which no caller reaches
}

func newServeCommand(hooks *catalog.Catalog, versions *hookversion.Converter) *cobra.Command {
	o := serveOptions{versions: versions}
	cmd := &cobra.Command{
		Use: "serve {--dev --extension URL | " +
			"{--extension-configs DIR | --kubeconfig FILE | --sidecar URL} --cert-dir DIR}",
		Short: "Run the gateway",
		Long: "Run the gateway: read ExtensionConfigs, discover the handlers of their extensions, and answer\n" +
			"hooks over HTTPS JSON and gRPC until SIGTERM or Ctrl-C, then finish the calls in flight.\n\n" +
			"Once all addresses are open, one line on standard output names them. The log goes to\n" +
			"standard error.",
		Example: "  hookgate serve --dev --extension https://127.0.0.1:9444\n" +
			"  hookgate serve --extension-configs manifests --cert-dir certs\n" +
			"  hookgate serve --kubeconfig ~/.kube/config --cert-dir certs --leader-elect",
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.setSidecarDefaults(cmd.Flags().Changed)
			o.setDevDefaults(cmd.Flags().Changed)
			o.dev.program = cmdline.Program(cmd)
			return o.run(cmd.Context(), hooks, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd.Flags())
	cmdline.GroupFlags(cmd, serveGroups)
	return cmd
}

func (o *serveOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.extensionConfigs, "extension-configs", "",
		"directory with manifests of ExtensionConfigs, and of the Namespaces and CustomResourceDefinitions whose "+
			"labels the gateway needs; the manifests are reloaded when they change")
	f.StringVar(&o.stateDir, "state-dir", "",
		"with --extension-configs, directory in which the gateway records the handlers of extensions, so that "+
			"a restarted gateway knows the handlers of an extension that is down; created if missing; each gateway needs "+
			"its own directory")
	f.StringVar(&o.sidecar, "sidecar", "",
		"URL of the extension that runs beside the gateway and speaks gRPC, such as grpc://127.0.0.1:9090 or "+
			"unix:///run/extension.sock; the gateway serves only this extension, and offers the handlers under the names "+
			"that the extension gives them")
	f.StringVar(&o.httpAddress, "http-address", "127.0.0.1:9443", "address for HTTPS JSON; port 0 means a free port")
	f.StringVar(&o.grpcAddress, "grpc-address", "127.0.0.1:9090",
		"address for gRPC with TLS; port 0 means a free port; an empty value turns gRPC off, which is the default with "+
			"--sidecar")
	f.StringVar(&o.certDir, "cert-dir", "",
		"directory with tls.crt and tls.key; if it also has ca.crt, callers must show a certificate signed by "+
			"that CA, or a token if the gateway checks tokens; the files are reloaded when they change")
	f.StringSliceVar(&o.selfCertificates, "self-certificates", nil,
		"make and renew certificates without cert-manager, in Secrets of the gateway's namespace, and write "+
			"them to --cert-dir and --webhook-cert-dir; \""+selfServers+"\" makes the gateway's own "+
			"certificates and sets the caBundle of its webhooks; \""+selfCallers+"\" also makes the CA and "+
			"the certificates of callers; without \""+selfCallers+"\", you put the CA of callers into the Secret "+
			"hookgate-callers-ca")
	f.DurationVar(&o.resync, "resync", time.Minute,
		"how often to ask each extension for its handlers again; with --sidecar, the default is 5s")
	f.DurationVar(&o.connectionAge, "connection-max-age", limits.DefaultConnectionAge,
		"how long a connection to an extension is used for new calls")
	f.DurationVar(&o.callerAge, "caller-connection-max-age", limits.DefaultCallerConnectionAge,
		"how long a connection of a caller is used for new calls, give or take a tenth; the limit spreads the calls "+
			"of callers that keep their connections, such as Cluster API, over all replicas; 0 means for ever")
	f.BoolVar(&o.preferHTTP2, "prefer-http2", false,
		"call extensions over HTTP/2 if they speak it; without this flag, the gateway uses HTTP/2 only for extensions "+
			"that do not speak HTTP/1.1, because calls are faster over HTTP/1.1")
	f.StringSliceVar(&o.allowedHosts, "allowed-extension-hosts", nil,
		"the only hosts that the gateway may call: host names, suffixes of host names such as .svc, addresses, "+
			"networks such as 10.0.0.0/8, and sockets such as unix:///run/acme.sock, or unix:///run/acme/ for "+
			"all sockets in a directory; if a proxy is used, it must be listed, too; default: all hosts, except "+
			"for link-local and multicast addresses, which are never called")
	f.StringVar(&o.gatewayID, "gateway-id", "",
		"id by which the gateway recognizes calls and handlers that come back to it; all replicas of a gateway "+
			"must have the same id, and different gateways must have different ids; default: one id for all replicas that "+
			"share a Lease, and an id of its own for any other process")
	f.DurationVar(&o.shutdownDelay, "shutdown-delay", 0,
		"how long the gateway still accepts calls after /readyz has begun to fail, so that load balancers notice")
	f.DurationVar(&o.shutdownTimeout, "shutdown-timeout", limits.DefaultShutdown,
		"how long calls in flight may take when the gateway stops")
	f.BoolVar(&o.openapi, "openapi", true,
		"serve the OpenAPI documents of the hooks on the HTTPS address, at "+openapi.DocumentPath+" and "+
			openapi.PathOf("<group>")+"; at "+openapi.Prefix+", also serve pages to read the documents and to try hooks")
	f.StringVar(&o.logFormat, "log-format", "text", "format of the log: text or json")
	f.StringVar(&o.logLevel, "log-level", "info", "lowest level to log: debug, info, warn or error")
	o.diagnostics.addFlags(f)
	o.diagnostics.addPageFlags(f)
	o.tls.addFlags(f)
	o.callers.addFlags(f)
	o.clientCertificate.addFlags(f)
	o.webhooks.addFlags(f)
	o.cluster.addFlags(f)
	o.tracing.addFlags(f)
	o.memory.addFlags(f)
	o.recording.addFlags(f)
	o.dev.addFlags(f)
	o.machines.AddFlags(f)
}

// setSidecarDefaults changes the defaults of unset flags where --sidecar needs other ones: the extension beside the
// gateway usually occupies the gRPC port, and speaks gRPC anyway.
func (o *serveOptions) setSidecarDefaults(changed func(flag string) bool) {
	if o.sidecar == "" {
		return
	}
	if !changed("grpc-address") {
		o.grpcAddress = ""
	}
	if !changed("resync") {
		o.resync = sidecar.DefaultResync
	}
}

// check returns an error of usage unless the flags fit together.
func (o *serveOptions) check() error {
	if err := o.checkDev(); err != nil {
		return err
	}
	if err := o.checkSource(); err != nil {
		return err
	}
	if o.certDir == "" {
		return cmdline.Usagef("--cert-dir is required: a directory with tls.crt and tls.key; --dev makes one")
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"--resync", o.resync}, {"--connection-max-age", o.connectionAge}, {"--shutdown-timeout", o.shutdownTimeout},
	} {
		if d.value <= 0 {
			return cmdline.Usagef("%s: want more than 0, got %s", d.flag, d.value)
		}
	}
	if o.gatewayID != "" {
		if err := via.CheckID(o.gatewayID); err != nil {
			return cmdline.Usagef("--gateway-id: %w", err)
		}
	}
	if o.httpAddress == "" && !o.machinesAlone {
		return cmdline.Usagef("--http-address is required: an address such as 127.0.0.1:9443")
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"--shutdown-delay", o.shutdownDelay}, {"--caller-connection-max-age", o.callerAge},
	} {
		if d.value < 0 {
			return cmdline.Usagef("%s: want 0 or more, got %s", d.flag, d.value)
		}
	}
	if err := o.checkSelfCertificates(); err != nil {
		return err
	}
	if err := o.webhooks.check(!o.wantsCluster()); err != nil {
		return err
	}
	if err := o.callers.check(!o.wantsCluster()); err != nil {
		return err
	}
	if err := o.clientCertificate.check(); err != nil {
		return err
	}
	if err := o.memory.check(); err != nil {
		return err
	}
	if err := o.recording.check(); err != nil {
		return err
	}
	if err := o.machines.Check(o.wantsCluster()); err != nil {
		return err
	}
	return o.tracing.check()
}
