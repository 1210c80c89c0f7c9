// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/localgateway"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/codec"
)

// explainOptions are the flags of hookgate explain.
type explainOptions struct {
	callOptions
	versions         *hookversion.Converter
	extensionConfigs string
	call             bool
	// connect opens the gateway, if the flags do not say which one.
	connect func(mandated *codec.Codec, errOut io.Writer) (*target.Server, func(), error)
}

// NewExplainCommand returns the command hookgate explain.
func NewExplainCommand(hooks *catalog.Catalog, versions *hookversion.Converter) *cobra.Command {
	o := explainOptions{versions: versions}
	cmd := &cobra.Command{
		Use:   "explain HOOK -f FILE",
		Short: "Show which handlers a request goes to, and why no others",
		Long: "Show which handlers and chains a gateway would call for a request: in which order, with which\n" +
			"timeout, failure policy and versions; and, for every other handler of the hook, which selector,\n" +
			"condition or policy excludes it. The command needs the same rights as a call of the hook, and\n" +
			"calls handlers only with --call.\n\n" +
			"FILE is a request, as for \"hookgate call\". For lifecycle hooks, and for\n" +
			"GenerateUpgradePlan, GeneratePatches and ValidateTopology, FILE may be just a Cluster, from which the\n" +
			"command makes a request. A request that is built from a Cluster has only the members that selectors need, so\n" +
			"conditions about other members fail.\n\n" +
			"With --extension-configs, no gateway is needed: the handlers come from the status of the\n" +
			"ExtensionConfigs in the directory or, with --call, from the extensions themselves.\n\n" +
			"The exit status is 0 if handlers would be called. For a hook that goes to all matching handlers, the\n" +
			"exit status is also 0 if no handler matches. The exit status is 1 if the call would fail before it\n" +
			"reaches a handler or, with --call, if the call fails.",
		Example: "  hookgate explain BeforeClusterUpgrade -f cluster.yaml --ca dev-ca.crt\n" +
			"  hookgate explain GeneratePatches -f request.yaml --extension-configs manifests/ --call\n" +
			"  hookgate explain CanUpdateMachine -f request.yaml --context management -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cmdline.Usagef("want one hook, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, hooks, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.handler, "handler", "",
		"name of the handler or chain to explain; default: all matching handlers and chains")
	f.StringVarP(&o.file, "file", "f", "", "file with the request or the Cluster, YAML or JSON; \"-\" is standard input")
	f.StringVarP(&o.output, "output", "o", cmdline.FormatTable, "format: table, yaml or json")
	addDecodePatches(f, &o.decode)
	f.BoolVar(&o.call, "call", false, "call the handlers, too, and show their answers and the objects after each "+
		"answer; only for "+hooks.ReadOnlyNames())
	f.StringVar(&o.extensionConfigs, "extension-configs", "",
		"directory with manifests to use instead of a gateway, in the form that \"hookgate serve\" reads")
	o.AddFlags(f)
	o.Gateway.AddFlags(f)
	cmd.ValidArgsFunction = cmdline.CompleteHooks(hooks)
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{
		"handler": o.completeHandlers(hooks), "context": target.CompleteContexts(&o.Gateway.Kube),
		"output": cmdline.CompleteFormats(),
	})
	return cmd
}

func (o *explainOptions) run(cmd *cobra.Command, hooks *catalog.Catalog, name string) error {
	h, err := cmdline.HookNamed(hooks, name)
	if err != nil {
		return err
	}
	printer, err := cmdline.NewPrinter(o.output)
	if err != nil {
		return err
	}
	if err := checkDecodePatches(o.decode, o.output); err != nil {
		return err
	}
	switch {
	case h.Singleton():
		return cmdline.Usagef("%s is answered by the gateway itself: \"hookgate get handlers\" lists the handlers", h.Hook)
	case o.file == "":
		return cmdline.Usagef("-f is required: a file with the request of %s, or with a Cluster", h.Hook)
	case o.Timeout <= 0:
		return cmdline.Usagef("--timeout: want more than 0, got %s", o.Timeout)
	}
	mandated := codec.New(hooks)
	request, ofCluster, err := readExplained(cmd.InOrStdin(), o.file, h, mandated, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if ofCluster && o.call {
		return cmdline.Usagef("--call: handlers of %s need a complete request, but -f has only a Cluster", h.Hook)
	}
	var x *gateway.Explanation
	if o.extensionConfigs != "" {
		x, err = o.inProcess(cmd, hooks, h, request)
	} else {
		x, err = o.ask(cmd, mandated, h, request)
	}
	if err != nil {
		return fmt.Errorf("explain %s: %w", h.Hook, err)
	}
	if o.decode {
		if err := decodeExplained(h, x); err != nil {
			return fmt.Errorf("explain %s: %w", h.Hook, err)
		}
	}
	body, err := json.Marshal(x)
	if err != nil {
		return fmt.Errorf("explain %s: %w", h.Hook, err)
	}
	table := func(w io.Writer) error { return (&explanationTable{w, h, mandated}).write(x) }
	if err := printer(cmd.OutOrStdout(), body, table); err != nil {
		return fmt.Errorf("print explanation: %w", err)
	}
	return failureOf(h, x)
}

// inProcess explains with the manifests of a directory.
func (o *explainOptions) inProcess(
	cmd *cobra.Command, hooks *catalog.Catalog, h *catalog.Hook, request proto.Message,
) (*gateway.Explanation, error) {
	if err := target.OnlyOneGateway(cmd); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), o.Timeout)
	defer cancel()
	local, err := localgateway.Open(ctx, o.extensionConfigs, hooks, o.versions, o.call, cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	defer local.Close()
	r := gateway.Request{Hook: h, Handler: o.handler, Message: request}
	if o.call {
		return local.ExplainCall(ctx, r)
	}
	return local.Explain(context.WithoutCancel(ctx), r) // the timeouts are those of handlers
}

// ask asks a gateway for an explanation.
func (o *explainOptions) ask(
	cmd *cobra.Command, mandated *codec.Codec, h *catalog.Hook, request proto.Message,
) (*gateway.Explanation, error) {
	connect := o.connect
	if connect == nil {
		connect = func(mandated *codec.Codec, errOut io.Writer) (*target.Server, func(), error) {
			return o.Connect(cmd, mandated, errOut)
		}
	}
	server, disconnect, err := connect(mandated, cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	defer disconnect()
	if server.Endpoint.IsGRPC() {
		return nil, cmdline.Usagef("--server %q: want https://, because a gateway explains calls only over HTTPS", o.Server)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), o.Timeout)
	defer cancel()
	r := server.Client.Explain(ctx, gateway.ExplainPrefix, h, o.handler, request, o.call)
	server.Warn(r.Header.Values(gateway.WarningHeader))
	switch {
	case r.Failure != nil:
		return nil, server.Explain(r.Failure)
	case r.HTTPCode == http.StatusNotFound && r.Header.Get(gateway.ErrorKindHeader) != hook.UnknownHandler.String():
		refused := server.Refusal(r, o.handler)
		refused.Hint = "Does the gateway explain calls? Older releases do not, nor do extensions."
		return nil, refused
	case r.HTTPCode != http.StatusOK:
		return nil, server.Refusal(r, o.handler)
	}
	x := &gateway.Explanation{}
	if err := json.Unmarshal(r.Body, x); err != nil || x.Hook != h.Hook {
		return nil, errors.New("the answer is not an explanation: is --server a gateway?")
	}
	return x, nil
}

// failureOf returns an error if the call that is explained fails, or would fail.
func failureOf(h *catalog.Hook, x *gateway.Explanation) error {
	switch {
	case x.Failure != nil:
		return fmt.Errorf("explain %s: the call fails with %s", h.Hook, x.Failure.Kind)
	case x.Answer == nil:
		return nil
	case x.Answer.Error != nil:
		return fmt.Errorf("call %s: %s: %s", h.Hook, x.Answer.Error.Kind, x.Answer.Error.Message)
	}
	var common struct{ Status, Message string }
	if err := json.Unmarshal(x.Answer.Response, &common); err == nil && common.Status == "Failure" {
		return fmt.Errorf("call %s: the extension answered Failure: %s", h.Hook,
			cmp.Or(common.Message, "it does not say why"))
	}
	return nil
}
