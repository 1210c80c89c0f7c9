// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/examples/requests"
	infracommand "github.com/hookgate/hookgate/infrastructure/command"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/base/yaml"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/printers"
)

// callOptions are the flags of hookgate call.
type callOptions struct {
	target.ClientOptions
	handler string
	file    string
	example bool
	output  string
	decode  bool
}

// NewCallCommand returns the command hookgate call.
func NewCallCommand(hooks *catalog.Catalog) *cobra.Command {
	var o callOptions
	cmd := &cobra.Command{
		Use:   "call HOOK {-f FILE | --example}",
		Short: "Call a hook and print the answer",
		Long: "Call a hook of a gateway, or of an extension, and print the answer.\n\n" +
			"FILE is the request in YAML or JSON, or \"-\" for standard input. The request may omit apiVersion and kind.\n" +
			"--example prints an example request, as YAML or, with -o json, as JSON. For lifecycle hooks, and for\n" +
			"GenerateUpgradePlan, GeneratePatches and ValidateTopology, FILE may be just a Cluster, from which the\n" +
			"command makes a request.\n" +
			"Without --handler, a lifecycle hook goes to every handler that matches; any other hook needs exactly\n" +
			"one that matches. The exit status is 0 if the answer's status is Success, even if the answer asks the\n" +
			"caller to wait (RETRY AFTER), and 1 if the status is Failure or there is no answer.\n\n" +
			strings.Join(text.Fold("The hooks, in upper or lower case: "+cmdline.HookNames(hooks)+".", 120), "\n"),
		Example: "  hookgate call BeforeClusterCreate --example > cluster.yaml\n" +
			"  hookgate call BeforeClusterCreate -f cluster.yaml --ca dev-ca.crt\n" +
			"  hookgate call GeneratePatches --handler set-image.example -f templates.yaml --ca dev-ca.crt \\\n" +
			"    --server grpcs://127.0.0.1:9090\n" +
			"  hookgate call Discovery -o json\n" +
			"  hookgate call Discovery --context management --ca ca.crt --cert tls.crt --key tls.key",
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
		"name of the handler to call, as \"hookgate get handlers\" prints it")
	f.StringVarP(&o.file, "file", "f", "", "file with the request, YAML or JSON; \"-\" is standard input")
	f.BoolVar(&o.example, "example", false,
		"print an example request, with comments that say what to change, and call nothing")
	f.StringVarP(&o.output, "output", "o", "table",
		"format: table, yaml, or json (the answer itself, indented)")
	addDecodePatches(f, &o.decode)
	o.AddFlags(f)
	o.Gateway.AddFlags(f)
	cmd.ValidArgsFunction = cmdline.CompleteHooks(hooks)
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{
		"handler": o.completeHandlers(hooks), "context": target.CompleteContexts(&o.Gateway.Kube),
		"output": cmdline.CompleteFormats(),
	})
	return cmd
}

func (o *callOptions) run(cmd *cobra.Command, hooks *catalog.Catalog, name string) error {
	h, err := cmdline.HookNamed(hooks, name)
	if err != nil {
		return err
	}
	if o.example {
		return o.printExample(cmd, h)
	}
	printer, err := cmdline.NewPrinter(o.output)
	if err != nil {
		return err
	}
	if err := checkDecodePatches(o.decode, o.output); err != nil {
		return err
	}
	if !h.TakesHandler() && o.handler != "" {
		return cmdline.Usagef("%s has no handlers: leave --handler out", h.Hook)
	}
	if o.file == "" && !h.Singleton() {
		return cmdline.Usagef("-f is required: a file with the request of %s; --example prints one", h.Hook)
	}
	mandated := codec.New(hooks)
	server, disconnect, err := o.Connect(cmd, mandated, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer disconnect()
	request := h.Request.New().Interface()
	if o.file != "" {
		var ofCluster bool
		request, ofCluster, err = readExplained(cmd.InOrStdin(), o.file, h, mandated, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if ofCluster {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "The command built the request only from the Cluster in %s; "+
				"--example prints a complete request.\n", target.InputName(o.file))
		}
	}
	if err := infracommand.CheckParameters(cmd.Context(), hooks, h, o.handler, request, messageOf(server)); err != nil {
		return fmt.Errorf("call %s: %w", h.Hook, err)
	}
	a, err := server.Call(cmd.Context(), h, o.handler, request)
	if err != nil {
		return fmt.Errorf("call %s: %w", h.Hook, err)
	}
	called := o.handler
	if a.Unhandled {
		called = "(none matches this request)"
	}
	body := a.Body
	if o.decode {
		if body, err = decodePatches(h, body); err != nil {
			return fmt.Errorf("print answer: %w", err)
		}
	}
	err = printer(cmd.OutOrStdout(), body, func(w io.Writer) error {
		return printers.Answer(w, h, called, a.Message, a.CallID)
	})
	if err != nil {
		return fmt.Errorf("print answer: %w", err)
	}
	if a.Unhandled {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "No handler matches this request, so the gateway itself answered it. "+
			"\"hookgate explain %s -f %s\" says\nwhy, and \"hookgate get handlers\" lists the handlers.\n",
			h.Hook, cmdline.ShellWord(o.file))
	}
	return target.CheckStatus(h, a)
}

// printExample prints an example of a request of the hook.
func (o *callOptions) printExample(cmd *cobra.Command, h *catalog.Hook) error {
	if o.file != "" {
		return cmdline.Usagef("--example prints a request and calls nothing: leave -f out")
	}
	printer, err := cmdline.NewPrinter(o.output)
	if err != nil {
		return err
	}
	example := requests.Example(h.GroupVersionHook)
	if example == nil {
		return fmt.Errorf("there is no example of a request of %s: hookgate has examples only for the hooks of "+
			"Cluster API, infrastructure and Machines", h.Hook)
	}
	if o.output != cmdline.FormatJSON { // YAML, with comments
		printer = func(w io.Writer, body []byte, _ func(io.Writer) error) error {
			_, err := w.Write(body)
			return err
		}
	} else if example, err = yaml.ToJSON(example, limits.BodyBytes); err != nil {
		return fmt.Errorf("print example: %w", err)
	}
	if err := printer(cmd.OutOrStdout(), example, nil); err != nil {
		return fmt.Errorf("print example: %w", err)
	}
	return nil
}

// messageOf returns a function that calls a server for the message of the answer.
func messageOf(s *target.Server) func(context.Context, *catalog.Hook, string, proto.Message) (proto.Message, error) {
	return func(ctx context.Context, h *catalog.Hook, handler string, request proto.Message) (proto.Message, error) {
		a, err := s.Call(ctx, h, handler, request)
		if err != nil {
			return nil, err
		}
		return a.Message, nil
	}
}
