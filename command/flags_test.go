// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/devcert"
)

// TestServeFlags tests each check of a flag at its limit and one beyond: a refused value is wrong usage.
func TestServeFlags(t *testing.T) {
	configs, certs := commandtest.Serving(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	kubeconfig := commandtest.WriteFile(t, "kubeconfig", "not a kubeconfig")
	callers := commandtest.WriteFile(t, "callers.yaml", "apiVersion: hookgate.dev/v1alpha1\nkind: Callers\n")
	_, mutual := commandtest.Serving(t)
	authority, err := devcert.NewAuthority(time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mutual, "ca.crt"), authority.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	directory := []string{"--extension-configs", configs, "--cert-dir", certs}
	cluster := []string{"--kubeconfig", kubeconfig, "--cert-dir", certs}
	sidecar := []string{"--sidecar", "grpc://127.0.0.1:1", "--cert-dir", certs}
	const noCluster = "hookgate: kubeconfig: " // the flags are right, and the cluster cannot be reached
	addresses := []string{"--http-address", "127.0.0.1:0", "--grpc-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0"}
	for name, tt := range map[string]struct {
		base  []string
		flags []string
		want  string // of the error; empty if it serves
		code  int
	}{
		"Directory":            {directory, nil, "", cmdline.ExitDone},
		"Resync":               {directory, []string{"--resync", "1ns"}, "", cmdline.ExitDone},
		"NoResync":             {directory, []string{"--resync", "0s"}, "--resync: want more than 0, got 0s", cmdline.ExitUsage},
		"NegativeResync":       {directory, []string{"--resync", "-1ns"}, "--resync: want more than 0, got -1ns", cmdline.ExitUsage},
		"ConnectionAge":        {directory, []string{"--connection-max-age", "1ns"}, "", cmdline.ExitDone},
		"NoConnectionAge":      {directory, []string{"--connection-max-age", "0s"}, "--connection-max-age: want more than 0, got 0s", cmdline.ExitUsage},
		"CallerAge":            {directory, []string{"--caller-connection-max-age", "1ns"}, "", cmdline.ExitDone},
		"NoCallerAge":          {directory, []string{"--caller-connection-max-age", "0s"}, "", cmdline.ExitDone},
		"NegativeCallerAge":    {directory, []string{"--caller-connection-max-age", "-1ns"}, "--caller-connection-max-age: want 0 or more, got -1ns", cmdline.ExitUsage},
		"ShutdownTimeout":      {directory, []string{"--shutdown-timeout", "1s"}, "", cmdline.ExitDone},
		"NoShutdownTimeout":    {directory, []string{"--shutdown-timeout", "0s"}, "--shutdown-timeout: want more than 0, got 0s", cmdline.ExitUsage},
		"NoShutdownDelay":      {directory, []string{"--shutdown-delay", "0s"}, "", cmdline.ExitDone},
		"NegativeDelay":        {directory, []string{"--shutdown-delay", "-1ns"}, "--shutdown-delay: want 0 or more, got -1ns", cmdline.ExitUsage},
		"GatewayID":            {directory, []string{"--gateway-id", "hub.eu-1"}, "", cmdline.ExitDone},
		"NoGatewayID":          {directory, []string{"--gateway-id", "hub/eu"}, "--gateway-id: want 1 to 64 letters, digits, and characters '-', '.' and '_'", cmdline.ExitUsage},
		"MemoryBudget":         {directory, []string{"--memory-budget", "96Mi"}, "", cmdline.ExitDone},
		"LittleMemory":         {directory, []string{"--memory-budget", "100663295"}, "--memory-budget: want at least 96Mi, got 100663295", cmdline.ExitUsage},
		"NoMemory":             {directory, []string{"--memory-budget", "much"}, "--memory-budget: want a quantity such as 256Mi, got \"much\"", cmdline.ExitUsage},
		"NoTraces":             {directory, []string{"--trace-ratio", "0"}, "", cmdline.ExitDone},
		"AllTraces":            {directory, []string{"--trace-ratio", "1"}, "", cmdline.ExitDone},
		"LessThanNoTraces":     {directory, []string{"--trace-ratio", "-0.001"}, "--trace-ratio: want 0 to 1, got -0.001", cmdline.ExitUsage},
		"MoreThanAllTraces":    {directory, []string{"--trace-ratio", "1.001"}, "--trace-ratio: want 0 to 1, got 1.001", cmdline.ExitUsage},
		"NoNumberOfTraces":     {directory, []string{"--trace-ratio", "NaN"}, "--trace-ratio: want 0 to 1, got NaN", cmdline.ExitUsage},
		"LogLevel":             {directory, []string{"--log-level", "error", "--log-format", "json"}, "", cmdline.ExitDone},
		"NoLogLevel":           {directory, []string{"--log-level", "all"}, `--log-level: want debug, info, warn or error, got "all"`, cmdline.ExitUsage},
		"NoLogFormat":          {directory, []string{"--log-format", "yaml"}, `--log-format: want text or json, got "yaml"`, cmdline.ExitUsage},
		"OldTLS":               {directory, []string{"--tls-min-version", "VersionTLS11"}, "--tls-min-version: want VersionTLS12 or VersionTLS13", cmdline.ExitUsage},
		"HalfACertificate":     {directory, []string{"--runtime-extension-client-cert-file", "x"}, "give both or none", cmdline.ExitUsage},
		"HalfAKey":             {directory, []string{"--runtime-extension-client-key-file", "x"}, "give both or none", cmdline.ExitUsage},
		"NoClientCertificate":  {directory, []string{"--runtime-extension-client-cert-file", "none", "--runtime-extension-client-key-file", "none"}, "read --runtime-extension-client-cert-file: certificate none and its key: ", cmdline.ExitFailed},
		"WebhookOfADirectory":  {directory, []string{"--webhook-port", "9444"}, "--webhook-port: no API server calls webhooks", cmdline.ExitUsage},
		"NoCertificates":       {[]string{"--extension-configs", configs}, nil, "--cert-dir is required", cmdline.ExitUsage},
		"MissingCertificates":  {[]string{"--extension-configs", configs, "--cert-dir", configs}, nil, "tls.crt is missing", cmdline.ExitFailed},
		"NoSource":             {[]string{"--cert-dir", certs}, nil, "--extension-configs is required", cmdline.ExitUsage},
		"DirectoryAndCluster":  {directory, []string{"--kubeconfig", kubeconfig}, "--extension-configs and --kubeconfig: ", cmdline.ExitUsage},
		"StateOfACluster":      {[]string{"--kubeconfig", kubeconfig, "--cert-dir", certs}, []string{"--state-dir", certs}, "--state-dir is for --extension-configs: ", cmdline.ExitUsage},
		"StateThatIsAFile":     {directory, []string{"--state-dir", kubeconfig}, "state: mkdir ", cmdline.ExitFailed},
		"DirectoryAndSidecar":  {directory, []string{"--sidecar", "grpc://127.0.0.1:1"}, "--sidecar and --extension-configs: a gateway serves the extension beside it or the extensions of a directory; give only one of these flags", cmdline.ExitUsage},
		"SidecarAndCluster":    {sidecar, []string{"--kubeconfig", kubeconfig}, "--sidecar and --kubeconfig: a gateway serves the extension beside it or the extensions of a cluster; give only one of these flags", cmdline.ExitUsage},
		"SidecarURL":           {[]string{"--sidecar", "https://127.0.0.1:1", "--cert-dir", certs}, nil, "--sidecar: must begin with grpc:// or unix://: an extension beside the gateway needs no TLS; register other extensions with ExtensionConfigs", cmdline.ExitUsage},
		"SidecarWithoutScheme": {[]string{"--sidecar", "127.0.0.1:1", "--cert-dir", certs}, nil, "--sidecar: must begin with grpc:// or unix://: ", cmdline.ExitUsage},
		"SidecarElsewhere":     {[]string{"--sidecar", "grpc://example.com:1", "--cert-dir", certs}, nil, "--sidecar: must be on loopback, because grpc:// has no TLS; use grpcs://", cmdline.ExitUsage},
		"SidecarWithWebhooks":  {sidecar, []string{"--webhook-port", "9444"}, "--webhook-port", cmdline.ExitUsage},
		"Diagnostics":          {directory, []string{"--diagnostics-address", "127.0.0.1"}, "--diagnostics-address: ", cmdline.ExitUsage},
		"OpenDiagnostics":      {directory, []string{"--diagnostics-address", "0.0.0.0:0"}, "is not on loopback", cmdline.ExitUsage},
		"InsecureDiagnostics":  {directory, []string{"--diagnostics-address", "0.0.0.0:0", "--insecure-diagnostics"}, "", cmdline.ExitDone},
		"OpenHTTP":             {directory, []string{"--http-address", "0.0.0.0:0"}, "--http-address 0.0.0.0:0 is not on loopback, and nothing authenticates callers: ", cmdline.ExitUsage},
		"OpenGRPC":             {directory, []string{"--grpc-address", ":0"}, "--grpc-address :0 is not on loopback", cmdline.ExitUsage},
		"HostName":             {directory, []string{"--http-address", "gateway.example:0"}, "is not on loopback", cmdline.ExitUsage},
		"OpenSidecar":          {sidecar, []string{"--http-address", ":0"}, "--http-address :0 is not on loopback", cmdline.ExitUsage},
		"Anonymous":            {directory, []string{"--http-address", "0.0.0.0:0", "--allow-anonymous-callers"}, "", cmdline.ExitDone},
		"Callers":              {directory, []string{"--http-address", ":0", "--grpc-address", "[::]:0", "--callers", callers}, "", cmdline.ExitDone},
		"CA":                   {[]string{"--extension-configs", configs, "--cert-dir", mutual}, []string{"--http-address", ":0"}, "", cmdline.ExitDone},
		"Names":                {[]string{"--extension-configs", configs, "--cert-dir", mutual}, []string{"--allowed-client-names", "core,spiffe://x/y"}, "", cmdline.ExitDone},
		"EmptyName":            {[]string{"--extension-configs", configs, "--cert-dir", mutual}, []string{"--allowed-client-names", "core,"}, "--allowed-client-names: a name is empty", cmdline.ExitUsage},
		"NamesWithoutCA":       {directory, []string{"--allowed-client-names", "core"}, "--allowed-client-names: --cert-dir has no ca.crt", cmdline.ExitUsage},
		"NoLimits":             {directory, []string{"--max-calls-per-second", "0", "--max-calls-in-flight", "0"}, "", cmdline.ExitDone},
		"NegativeRate":         {directory, []string{"--max-calls-per-second", "-1"}, "--max-calls-per-second and --max-calls-in-flight: want 0 or more, got -1 and 1000", cmdline.ExitUsage},
		"NegativeCalls":        {directory, []string{"--max-calls-in-flight", "-1"}, "want 0 or more, got 10000 and -1", cmdline.ExitUsage},
		"SelfOfAnother":        {directory, []string{"--self-certificates=clients"}, "--self-certificates: want servers or callers, got \"clients\"", cmdline.ExitUsage},
		"SelfWithoutServers":   {directory, []string{"--self-certificates=callers"}, "use --self-certificates=servers,callers", cmdline.ExitUsage},
		"SelfOfNoCluster":      {directory, []string{"--self-certificates=servers"}, "--self-certificates: the certificates are in Secrets of a cluster; give --kubeconfig", cmdline.ExitUsage},
		"TokensOfNoCluster":    {directory, []string{"--kubernetes-tokens"}, "--kubernetes-tokens: without a cluster, no API server can check tokens", cmdline.ExitUsage},
		"AudienceOfNoTokens":   {directory, []string{"--kubernetes-token-audiences", "a"}, "--kubernetes-token-audiences: tokens are checked only with --kubernetes-tokens", cmdline.ExitUsage},
		"EmptyAudience":        {cluster, []string{"--kubernetes-tokens", "--kubernetes-token-audiences", "a,"}, "an audience is empty", cmdline.ExitUsage},
		"Tokens":               {cluster, []string{"--kubernetes-tokens", "--http-address", ":0"}, noCluster, cmdline.ExitFailed},
		"NoCallers":            {directory, []string{"--callers", "none"}, "read --callers: ", cmdline.ExitFailed},
		"BadCallers":           {directory, []string{"--callers", kubeconfig}, "is not a file of callers", cmdline.ExitFailed},
		"LocalDiagnostics":     {directory, []string{"--diagnostics-address", "localhost:0"}, "", cmdline.ExitDone},
		"LastLocalDiagnostics": {directory, []string{"--diagnostics-address", "127.255.255.254:0"}, "", cmdline.ExitDone},
		"HealthAndNoGRPC":      {directory, []string{"--health-addr", "127.0.0.1:0", "--grpc-address", ""}, "", cmdline.ExitDone},
		"BusyAddress":          {directory, []string{"--http-address", busy.Addr().String()}, busy.Addr().String(), cmdline.ExitFailed},
		"Argument":             {directory, []string{"x"}, `want no arguments, got "x"`, cmdline.ExitUsage},
		"UnknownFlag":          {directory, []string{"--verbose"}, "unknown flag: --verbose", cmdline.ExitUsage},
		"NoDuration":           {directory, []string{"--resync", "1"}, `invalid argument "1" for "--resync"`, cmdline.ExitUsage},
		"Cluster":              {cluster, nil, noCluster, cmdline.ExitFailed},
		"OneAtATime":           {cluster, []string{"--extensionconfig-concurrency", "1"}, noCluster, cmdline.ExitFailed},
		"NoneAtATime":          {cluster, []string{"--extensionconfig-concurrency", "0"}, "--extensionconfig-concurrency: want more than 0, got 0", cmdline.ExitUsage},
		"LeastRate":            {cluster, []string{"--kube-api-qps", "0.001", "--kube-api-burst", "1"}, noCluster, cmdline.ExitFailed},
		"NoRate":               {cluster, []string{"--kube-api-qps", "0"}, "--kube-api-qps and --kube-api-burst: want more than 0, got 0 and 200", cmdline.ExitUsage},
		"NoBurst":              {cluster, []string{"--kube-api-burst", "0"}, "--kube-api-qps and --kube-api-burst: want more than 0, got 100 and 0", cmdline.ExitUsage},
		"OwnGroup":             {cluster, []string{"--extension-config-group", "runtime.hookgate.dev"}, noCluster, cmdline.ExitFailed},
		"OtherGroup":           {cluster, []string{"--extension-config-group", "runtime.cluster.x-k8s.io."}, "--extension-config-group: want ", cmdline.ExitUsage},
		"ReadOnlyJobs":         {cluster, []string{"--read-only", "--hook-jobs-namespace=jobs"}, "--read-only and --hook-jobs-namespace: ", cmdline.ExitUsage},
		"JobsNamespace":        {cluster, []string{"--hook-jobs-namespace=Jobs"}, `--hook-jobs-namespace "Jobs": want Cluster or the name of a namespace: `, cmdline.ExitUsage},
		"JobsPodSecurity":      {cluster, []string{"--hook-jobs-pod-security=strict"}, `--hook-jobs-pod-security: want restricted, baseline or privileged, got "strict"`, cmdline.ExitUsage},
		"JobsOfDirectory":      {directory, []string{"--hook-jobs-namespace=jobs"}, "--hook-jobs-namespace: this gateway has no cluster", cmdline.ExitUsage},
		"ReadOnlyLeader":       {cluster, []string{"--read-only", "--leader-elect"}, "--read-only and --leader-elect: ", cmdline.ExitUsage},
		"Reader":               {cluster, []string{"--read-only"}, noCluster, cmdline.ExitFailed},
		"LastPort":             {cluster, []string{"--webhook-port", "65535"}, noCluster, cmdline.ExitFailed},
		"OneBeyondLastPort":    {cluster, []string{"--webhook-port", "65536"}, "--webhook-port: want 0 to 65535, got 65536", cmdline.ExitUsage},
		"NegativePort":         {cluster, []string{"--webhook-port", "-1"}, "--webhook-port: want 0 to 65535, got -1", cmdline.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			got := commandtest.ServeBriefly(t, nil, slices.Concat(addresses, tt.base, tt.flags)...)
			if got.Code != tt.code || !strings.Contains(got.ErrOut, tt.want) {
				t.Errorf("exit status %d, want %d and %q:\n%s", got.Code, tt.code, tt.want, got.ErrOut)
			}
			if usage := strings.Contains(got.ErrOut, `Run "hookgate serve --help"`); usage != (tt.code == cmdline.ExitUsage) {
				t.Errorf("help is offered: %v, exit status %d:\n%s", usage, got.Code, got.ErrOut)
			}
			if serves := strings.HasPrefix(got.Out, "hookgate serving https="); serves != (tt.code == cmdline.ExitDone) {
				t.Errorf("it served: %v, exit status %d: %q", serves, got.Code, got.Out)
			}
		})
	}
}

// TestAddressesAreOnOneLine checks which addresses are printed, and in which order.
func TestAddressesAreOnOneLine(t *testing.T) {
	configs, certs := commandtest.Serving(t)
	for want, flags := range map[string][]string{
		"https grpc diagnostics":        nil,
		"https diagnostics":             {"--grpc-address", ""},
		"https grpc diagnostics health": {"--health-addr", "127.0.0.1:0"},
	} {
		got := commandtest.ServeBriefly(t, nil, append([]string{"--extension-configs", configs, "--cert-dir", certs, "--http-address", "127.0.0.1:0",
			"--grpc-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0"}, flags...)...)
		line, _ := strings.CutPrefix(got.Out, "hookgate serving ")
		var names []string
		for field := range strings.FieldsSeq(line) {
			name, address, _ := strings.Cut(field, "=")
			names = append(names, name)
			if !strings.HasPrefix(address, "127.0.0.1:") || strings.HasSuffix(address, ":0") {
				t.Errorf("address %s is not what listens", field)
			}
		}
		if strings.Join(names, " ") != want || strings.Count(got.Out, "\n") != 1 {
			t.Errorf("printed %q, want one line with %s", got.Out, want)
		}
	}
}

// TestEnvironment checks that the command line overrides the environment, and that a mistake in a variable is wrong
// usage that names it.
func TestEnvironment(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		env  map[string]string
		want string // of --text and --count
		err  string
	}{
		"defaults":          {nil, nil, "default 7", ""},
		"environment":       {nil, map[string]string{"HOOKGATE_TEXT_HERE": "env", "HOOKGATE_COUNT": "8"}, "env 8", ""},
		"command line":      {[]string{"--text-here=flag"}, map[string]string{"HOOKGATE_TEXT_HERE": "env", "HOOKGATE_COUNT": "8"}, "flag 8", ""},
		"the default, said": {[]string{"--text-here=default"}, map[string]string{"HOOKGATE_TEXT_HERE": "env"}, "default 7", ""},
		"empty":             {nil, map[string]string{"HOOKGATE_TEXT_HERE": ""}, " 7", ""},
		"another name":      {nil, map[string]string{"HOOKGATE_TEXT-HERE": "env", "TEXT_HERE": "env", "HOOKGATE_HELP": "x"}, "default 7", ""},
		"mistakes": {nil, map[string]string{"HOOKGATE_COUNT": "many", "HOOKGATE_WAIT": "1"}, "",
			"environment variable HOOKGATE_COUNT: invalid argument \"many\" for \"--count\" flag: must be an integer\n" +
				"environment variable HOOKGATE_WAIT: invalid argument \"1\" for \"--wait\" flag: must be a duration like \"30s\" or \"5m\""},
	} {
		f := pflag.NewFlagSet("test", pflag.ContinueOnError)
		text, count := f.String("text-here", "default", ""), f.Int("count", 7, "")
		f.Duration("wait", time.Second, "")
		f.Bool("help", false, "")
		if err := f.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		err := cmdline.FlagsFromEnvironment(f, func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
		if err == nil && tt.err != "" || err != nil && err.Error() != tt.err {
			t.Errorf("%s: got %v, want %s", name, err, tt.err)
		}
		if got := fmt.Sprint(*text, " ", *count); err == nil && got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
	configs, certs := commandtest.Serving(t)
	env := map[string]string{"HOOKGATE_EXTENSION_CONFIGS": configs, "HOOKGATE_CERT_DIR": certs, "HOOKGATE_RESYNC": "0s"}
	if got := commandtest.ServeBriefly(t, env); got.Code != cmdline.ExitUsage || !strings.Contains(got.ErrOut, "--resync: want more than 0") {
		t.Errorf("a value out of range: exit status %d: %s", got.Code, got.ErrOut)
	}
	env["HOOKGATE_RESYNC"] = "often"
	if got := commandtest.ServeBriefly(t, env); got.Code != cmdline.ExitUsage || !strings.Contains(got.ErrOut, "environment variable HOOKGATE_RESYNC: ") {
		t.Errorf("a value that is none: exit status %d: %s", got.Code, got.ErrOut)
	}
	delete(env, "HOOKGATE_RESYNC")
	maps.Copy(env, map[string]string{"HOOKGATE_HTTP_ADDRESS": "127.0.0.1:0", "HOOKGATE_GRPC_ADDRESS": "", "HOOKGATE_DIAGNOSTICS_ADDRESS": "127.0.0.1:0"})
	if got := commandtest.ServeBriefly(t, env); got.Code != cmdline.ExitDone || strings.Contains(got.Out, "grpc=") {
		t.Errorf("all from the environment: exit status %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
}

// TestCommandLineSaysWhereToAsk checks that a variable does not contradict the command line about what to ask.
func TestCommandLineSaysWhereToAsk(t *testing.T) {
	all := map[string]string{"HOOKGATE_SERVER": "s", "HOOKGATE_DIAGNOSTICS": "d", "HOOKGATE_GATEWAY": "g", "HOOKGATE_CONTEXT": "c", "HOOKGATE_CA": "f"}
	for name, tt := range map[string]struct {
		flags, args []string
		want        string
	}{
		"nothing":         {[]string{"server", "diagnostics", "gateway", "context", "ca"}, nil, "ca=f context=c diagnostics=d gateway=g server=s"},
		"another address": {[]string{"server", "diagnostics", "gateway", "context", "ca"}, []string{"--server=x"}, "ca=f context= diagnostics= gateway= server=x"},
		"a cluster":       {[]string{"server", "diagnostics", "gateway", "context", "ca"}, []string{"--context=x"}, "ca=f context=x diagnostics= gateway=g server="},
		"render":          {[]string{"server", "context", "ca"}, []string{"--server=x"}, "ca=f context=c server=x"},
		"no client":       {[]string{"gateway", "context", "ca"}, []string{"--gateway=x"}, "ca=f context=c gateway=x"},
	} {
		f := pflag.NewFlagSet("test", pflag.ContinueOnError)
		for _, flag := range tt.flags {
			f.String(flag, "", "")
		}
		if err := f.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		if err := cmdline.FlagsFromEnvironment(f, func(name string) (string, bool) { v, ok := all[name]; return v, ok }); err != nil {
			t.Fatal(err)
		}
		var got []string
		f.VisitAll(func(flag *pflag.Flag) { got = append(got, flag.Name+"="+flag.Value.String()) })
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// TestSidecarDefaults checks that a sidecar has no gRPC and repeats discovery often, unless flags or variables change
// that.
func TestSidecarDefaults(t *testing.T) {
	for name, tt := range map[string]struct {
		sidecar string
		changed []string
		grpc    string
		resync  time.Duration
	}{
		"hub":              {"", nil, "g", time.Hour},
		"sidecar":          {"grpc://127.0.0.1:1", nil, "", 5 * time.Second},
		"sidecar, gRPC":    {"grpc://127.0.0.1:1", []string{"grpc-address"}, "g", 5 * time.Second},
		"sidecar, resync":  {"grpc://127.0.0.1:1", []string{"resync"}, "", time.Hour},
		"sidecar, another": {"grpc://127.0.0.1:1", []string{"http-address"}, "", 5 * time.Second},
	} {
		o := serveOptions{sidecar: tt.sidecar, grpcAddress: "g", resync: time.Hour}
		o.setSidecarDefaults(func(flag string) bool { return slices.Contains(tt.changed, flag) })
		if o.grpcAddress != tt.grpc || o.resync != tt.resync {
			t.Errorf("%s: gRPC at %q, resync %s, want %q and %s", name, o.grpcAddress, o.resync, tt.grpc, tt.resync)
		}
	}
}

// TestOwnAddresses checks which addresses of ExtensionConfigs count as the gateway itself.
func TestOwnAddresses(t *testing.T) {
	local := "localhost:9443 127.0.0.1:9443 [::1]:9443"
	for address, want := range map[string]string{
		":9443": local, "0.0.0.0:9443": local, "[::]:9443": local, "127.0.0.1:9443": local, "127.9.9.9:9443": local, "[::1]:9443": local, "localhost:9443": local,
		"192.0.2.7:9443": "192.0.2.7:9443", "gateway.example:9443": "gateway.example:9443", "127.0.0.1:0": "", ":0": "", "nonsense": "",
	} {
		if got := strings.Join(ownAddresses(address), " "); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}

// TestFlagsHaveHelp checks that the help of every command names its flags in a form that docs/ can quote.
func TestFlagsHaveHelp(t *testing.T) {
	root, err := newRootCommand(nil)
	if err != nil {
		t.Fatal(err)
	}
	commands := root.Commands()
	for _, name := range []string{"handlers", "clusters"} {
		cmd, _, err := root.Find([]string{"get", name})
		if err != nil || cmd.Name() == "get" {
			t.Fatalf("get %s: %v", name, err)
		}
		commands = append(commands, cmd)
	}
	for _, cmd := range commands {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") || strings.ToLower(f.Usage[:1]) != f.Usage[:1] && !strings.ContainsAny(f.Usage[:2], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				t.Errorf("%s --%s: help %q is no phrase without a full stop", cmd.Name(), f.Name, f.Usage)
			}
		})
	}
	// The pages name flags of hookgate that exist.
	known := map[string]bool{"--help": true}
	for _, cmd := range commands {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known["--"+f.Name] = true })
	}
	for _, idea := range limits.Table() {
		for _, l := range idea.Limits {
			for _, flag := range regexp.MustCompile("--[a-z-]+").FindAllString(l.Set, -1) {
				if !known[flag] {
					t.Errorf("the table of limits: hookgate has no flag %s", flag)
				}
			}
		}
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			_, flags, ok := strings.Cut(line, "hookgate ")
			command, _, _ := strings.Cut(flags, " ")
			if !ok || !slices.Contains([]string{"serve", "call", "get", "check", "preflight"}, command) {
				continue
			}
			for word := range strings.FieldsSeq(flags) {
				word, _, _ = strings.Cut(strings.Trim(word, "`.,;:()[]"), "=")
				if word == "|" || word == "&&" || word == ">" {
					break
				}
				if strings.HasPrefix(word, "--") && !known[word] {
					t.Errorf("%s: hookgate has no flag %s: %s", page, word, line)
				}
			}
		}
	}
}
