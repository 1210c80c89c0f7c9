// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/tunnel"
)

const (
	// DefaultGateway is the namespace of a gateway that is installed as deploy/ says.
	DefaultGateway = "hookgate-system"
	// GatewayLabel selects the Pods of a gateway, and gatewayService is its name in the cluster.
	GatewayLabel   = "app.kubernetes.io/name=hookgate"
	gatewayService = "hookgate"
)

// gatewayOptions are the flags of client commands that say which gateway in a cluster to reach, through the API server.
type gatewayOptions struct {
	Kube KubeOptions
	// Name is NAMESPACE or NAMESPACE/POD.
	Name string
}

func (o *gatewayOptions) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Name, "gateway", "",
		"gateway in a cluster, as NAMESPACE or NAMESPACE/POD: connect to the gateway's Pod through the API server, as "+
			"kubectl port-forward does; default with --context or --kubeconfig: "+DefaultGateway+". A flag with an address, "+
			"such as --diagnostics, then sets only the scheme and the port")
	o.Kube.AddFlags(f)
	f.Lookup("context").Usage = "context of the kubeconfig: connect to the gateway in the context's cluster. Without " +
		"--context, --kubeconfig and --gateway, the command connects to a gateway on this machine"
}

// OfCluster reports whether the flags about the cluster are set.
func (o *gatewayOptions) OfCluster() bool { return o.Kube.Kubeconfig != "" || o.Kube.context != "" }

// Selected reports whether the flags name a gateway in a cluster. One that is only the default gives way to an address.
func (o *gatewayOptions) Selected(changed func(flag string) bool, addresses ...string) bool {
	if o.OfCluster() || changed("gateway") {
		return o.OfCluster() || o.Name != ""
	}
	return o.Name != "" && !slices.ContainsFunc(addresses, changed)
}

// target returns the Pod that the flags name.
func (o *gatewayOptions) target() (tunnel.Target, error) {
	namespace, pod, named := strings.Cut(cmp.Or(o.Name, DefaultGateway), "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || named && len(validation.IsDNS1123Subdomain(pod)) > 0 {
		return tunnel.Target{}, cmdline.Usagef("--gateway %q: want NAMESPACE or NAMESPACE/POD", o.Name)
	}
	return tunnel.Target{Namespace: namespace, Pod: pod, Selector: GatewayLabel}, nil
}

// Connect opens the tunnel to the gateway that the flags name, if they name one, and a client of the server. disconnect
// closes both.
func (o *ClientOptions) Connect(
	cmd *cobra.Command, c *codec.Codec, errOut io.Writer,
) (s *Server, disconnect func(), err error) {
	closeTunnel, err := o.reach(cmd)
	if err != nil {
		return nil, nil, err
	}
	if s, err = o.Open(c, errOut); err != nil {
		closeTunnel()
		return nil, nil, err
	}
	return s, func() { s.Client.Close(); closeTunnel() }, nil
}

// reach opens the tunnel to the gateway that the flags name, if they name one, and returns what closes it. The address
// of the server is then the one that the Pod's command line says, unless a flag sets it.
func (o *ClientOptions) reach(cmd *cobra.Command) (closeTunnel func(), err error) {
	address := strings.TrimPrefix(o.flag(), "--")
	if !o.Gateway.Selected(cmd.Flags().Changed, address) {
		return func() {}, nil
	}
	target, err := o.Gateway.target()
	if err != nil {
		return nil, err
	}
	config, err := o.Gateway.Kube.Load()
	if err != nil {
		return nil, err
	}
	if o.Tunnel, err = tunnel.Open(cmd.Context(), config, target); err != nil {
		return nil, err
	}
	o.Config = config
	if !cmd.Flags().Changed(address) {
		if o.Server = diagnosticsOf(o.Tunnel.Pod()); address == "server" {
			o.Server = serverOf(o.Tunnel.Pod())
		}
	}
	return o.Tunnel.Close, nil
}

// OpenServer returns the server for HTTPS JSON of the gateway in the Pod behind the tunnel, which is open.
func (o *ClientOptions) OpenServer(c *codec.Codec, errOut io.Writer) (*Server, error) {
	server := *o
	server.Server, server.ServerFlag = serverOf(o.Tunnel.Pod()), ""
	return server.Open(c, errOut)
}

// serverOf returns the URL for HTTPS JSON of the gateway in a Pod.
func serverOf(pod *corev1.Pod) string {
	_, port := splitAddress(podFlag(pod, "http-address"), "9443")
	return "https://" + serviceOf(pod) + ":" + port
}

// diagnosticsOf returns the URL of the diagnostics address of the gateway in a Pod.
func diagnosticsOf(pod *corev1.Pod) string {
	host, port := splitAddress(podFlag(pod, "diagnostics-address"), "8443")
	insecure := podFlag(pod, "insecure-diagnostics") == "true"
	if insecure || cmdline.IsLoopback(net.JoinHostPort(host, port)) {
		return "http://127.0.0.1:" + port
	}
	return "https://" + serviceOf(pod) + ":" + port
}

// serviceOf returns the name that certificates of a gateway have.
func serviceOf(pod *corev1.Pod) string { return gatewayService + "." + pod.Namespace + ".svc" }

// splitAddress returns host and port of an address that a gateway listens on; by default, that is loopback.
func splitAddress(address, defaultPort string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "127.0.0.1", defaultPort
	}
	return host, port
}

// podFlag returns the value of a flag of hookgate serve in a Pod: of its command line, or of its environment. It is
// empty without one, and where it comes from elsewhere.
func podFlag(pod *corev1.Pod, flag string) string {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		args := slices.Concat(c.Command, c.Args)
		if !slices.Contains(args, "serve") {
			continue
		}
		found := ""
		for i, arg := range args {
			if value, ok := strings.CutPrefix(arg, "--"+flag+"="); ok {
				found = value
			} else if arg == "--"+flag {
				found = "true"
				if i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
					found = args[i+1]
				}
			}
		}
		if found != "" {
			return found
		}
		for _, e := range c.Env {
			if e.Name == cmdline.EnvironmentName(flag) {
				return e.Value
			}
		}
	}
	return ""
}

// OnlyOneGateway returns an error if the flags name both a gateway and a directory.
func OnlyOneGateway(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("extension-configs") {
		return nil
	}
	for _, flag := range []string{"server", "gateway", "context", "kubeconfig"} {
		if cmd.Flags().Changed(flag) {
			return cmdline.Usagef("--extension-configs reads a directory, and --%s asks a gateway: leave out one of the "+
				"two flags", flag)
		}
	}
	return nil
}
