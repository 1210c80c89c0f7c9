// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/examples/requests"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/render"
)

// callOptions are the flags of hookgate call.
type callOptions struct {
	clientOptions
	handler string
	file    string
	example bool
	output  string
	decode  bool
}

func newCallCommand(hooks *catalog.Catalog) *cobra.Command {
	var o callOptions
	cmd := &cobra.Command{
		Use:   "call HOOK {-f FILE | --example}",
		Short: "Call a hook and print the answer",
		Long: "Call a hook of a gateway, or of an extension, and print the answer.\n\n" +
			"FILE is the request in YAML or JSON; apiVersion and kind may be left out, and \"-\" is standard\n" +
			"input. --example prints one to start from. Without --handler, a gateway calls every handler that\n" +
			"matches. The exit status is 0 if the answer's status is Success, even if the answer asks the caller\n" +
			"to wait (RETRY AFTER), and 1 if the status is Failure or there is no answer.\n\n" +
			strings.Join(text.Fold("The hooks, in upper or lower case: "+hookNames(hooks)+".", 120), "\n"),
		Example: "  hookgate call BeforeClusterCreate --example > cluster.yaml\n" +
			"  hookgate call BeforeClusterCreate -f cluster.yaml --ca dev-ca.crt\n" +
			"  hookgate call GeneratePatches --handler set-image.example -f templates.yaml --ca dev-ca.crt \\\n" +
			"    --server grpcs://127.0.0.1:9090\n" +
			"  hookgate call Discovery -o json\n" +
			"  hookgate call Discovery --context management --ca ca.crt --cert tls.crt --key tls.key",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("want one hook, got %d arguments", len(args))
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
		"print an example of a request of the hook, with comments that say what to change, and call nothing")
	f.StringVarP(&o.output, "output", "o", "table",
		"format of the answer: table, yaml, or json, which is the answer itself, indented")
	addDecodePatches(f, &o.decode)
	o.addFlags(f)
	o.gateway.addFlags(f)
	cmd.ValidArgsFunction = completeHooks(hooks)
	completeFlags(cmd, map[string]completion{
		"handler": o.completeHandlers(hooks), "context": completeContexts(&o.gateway.kube), "output": completeFormats(),
	})
	return cmd
}

func (o *callOptions) run(cmd *cobra.Command, hooks *catalog.Catalog, name string) error {
	h, err := hookNamed(hooks, name)
	if err != nil {
		return err
	}
	if o.example {
		return o.printExample(cmd, h)
	}
	printer, err := newPrinter(o.output)
	if err != nil {
		return err
	}
	if err := checkDecodePatches(o.decode, o.output); err != nil {
		return err
	}
	if h.Singleton() && o.handler != "" {
		return usagef("%s has no handlers: want no --handler", h.Hook)
	}
	if o.file == "" && !h.Singleton() {
		return usagef("-f is required: a file with the request of %s; --example prints one", h.Hook)
	}
	closeTunnel, err := o.reach(cmd)
	if err != nil {
		return err
	}
	defer closeTunnel()
	mandated := codec.New(hooks)
	server, err := o.open(mandated, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer server.client.Close()
	request := h.Request.New().Interface()
	if o.file != "" {
		if request, err = readRequest(cmd.InOrStdin(), o.file, h, mandated); err != nil {
			return err
		}
	}
	if err := server.checkParameters(cmd.Context(), hooks, h, o.handler, request); err != nil {
		return fmt.Errorf("call %s: %w", h.Hook, err)
	}
	a, err := server.call(cmd.Context(), h, o.handler, request)
	if err != nil {
		return fmt.Errorf("call %s: %w", h.Hook, err)
	}
	body := a.body
	if o.decode {
		if body, err = decodePatches(h, body); err != nil {
			return fmt.Errorf("print answer: %w", err)
		}
	}
	err = printer(cmd.OutOrStdout(), body, func(w io.Writer) error {
		return render.Answer(w, h, o.handler, a.message, a.callID)
	})
	if err != nil {
		return fmt.Errorf("print answer: %w", err)
	}
	return checkStatus(h, a)
}

// printExample prints an example of a request of the hook.
func (o *callOptions) printExample(cmd *cobra.Command, h *catalog.Hook) error {
	if o.file != "" {
		return usagef("--example prints a request and calls nothing: want no -f")
	}
	example := requests.Example(h.GroupVersionHook)
	if example == nil {
		return fmt.Errorf("there is no example of a request of %s: hookgate has those of Cluster API's hooks and of "+
			"infrastructure", h.Hook)
	}
	if _, err := cmd.OutOrStdout().Write(example); err != nil {
		return fmt.Errorf("print example: %w", err)
	}
	return nil
}

// checkStatus returns an error unless the answer has the status Success. An answer without a status is an error, too.
func checkStatus(h *catalog.Hook, a *answer) error {
	common, ok := a.message.(interface {
		GetStatus() hooksv1alpha1.ResponseStatus
		GetMessage() string
	})
	if !ok {
		return fmt.Errorf("call %s: answer %T has no status", h.Hook, a.message)
	}
	id := ""
	if a.callID != "" {
		id = " (call id " + text.Printable(a.callID) + ")"
	}
	switch common.GetStatus() {
	case hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS:
		return nil
	case hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE:
		if common.GetMessage() == "" {
			return fmt.Errorf("call %s: the extension answered Failure, without a message%s", h.Hook, id)
		}
		return fmt.Errorf("call %s: the extension answered Failure: %s%s", h.Hook, text.Printable(common.GetMessage()), id)
	default:
		return errors.New("call " + h.Hook + ": the answer has no status: it must be Success or Failure" + id)
	}
}

func hookNames(c *catalog.Catalog) string {
	var names []string
	for _, h := range c.Hooks() {
		names = append(names, h.Hook)
	}
	return strings.Join(names, ", ")
}

// hookNamed returns the hook with a name, in any letter case.
func hookNamed(hooks *catalog.Catalog, name string) (*catalog.Hook, error) {
	h, ok := hooks.ByName(name)
	if !ok {
		return nil, usagef("no hook %q, did you mean %s? The hooks are %s",
			name, nearestHook(hooks, name), hookNames(hooks))
	}
	return h, nil
}

// nearestHook returns the hook whose name takes the fewest edits to reach; the first by name of several.
func nearestHook(c *catalog.Catalog, name string) string {
	nearest, least := "", -1
	for _, h := range c.Hooks() {
		if d := text.EditDistance(strings.ToLower(name), strings.ToLower(h.Hook)); least < 0 || d < least {
			nearest, least = h.Hook, d
		}
	}
	return nearest
}
