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
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/table"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/recording"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/seeing/replay"
)

// replayOptions are the flags of hookgate replay.
type replayOptions struct {
	target.ClientOptions
	handler, as, hook string
	ignore            []string
	all               bool
	rate              float64
	output            string
}

// NewReplayCommand returns the command hookgate replay.
func NewReplayCommand(hooks *catalog.Catalog) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay FILE... --server URL",
		Short: "Send recorded calls to an extension or a gateway, and show which answers differ",
		Long: "Send the calls of a recording (\"hookgate serve --record\") to an extension or a gateway,\n" +
			"one after the other, and show which answers differ from the recorded ones. Patches are\n" +
			"compared by the objects that they produce, not by their text. \"-\" is standard input.\n\n" +
			"Without --all-hooks, replay leaves out calls that have side effects. These are the calls of\n" +
			"UpdateMachine, of hooks whose names begin with \"After\", of infrastructure hooks, and of hooks of\n" +
			"other groups, and also all calls that HookJobs have answered. If a gateway has made a call only\n" +
			"to compare two versions of a rollout, replay leaves out the call unless --handler names a handler\n" +
			"of one of the two versions. The exit status is 0 if no answer differs, 1 if an answer differs, and\n" +
			"2 for wrong usage or if a call could not be replayed.",
		Example: "  hookgate replay recording/*.jsonl --server https://127.0.0.1:9443 --ca dev-ca.crt\n" +
			"  hookgate replay calls.jsonl --server grpcs://acme-v7.example:9090 --handler patch.acme-v6 --as patch \\\n" +
			"    --ignore /message --ignore /spec/template/metadata/annotations",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmdline.Usagef("want at least one file of a recording")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, hooks, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.handler, "handler", "",
		"replay only the calls of this handler: its registered name, such as patch.acme; the name of a version in a "+
			"rollout, such as patch.acme-v7; or the extension's own name for the handler")
	f.StringVar(&o.as, "as", "",
		"call this handler instead of the one in --handler, which is required; by default, a gateway is called with the "+
			"name that callers know, and an extension with the extension's own name for the handler")
	f.StringVar(&o.hook, "hook", "", "replay only the calls of this hook")
	f.StringArrayVar(&o.ignore, "ignore", nil,
		"JSON pointer to a value that may differ, such as /message or /retryAfterSeconds, in answers and in the "+
			"objects that patches change; * stands for any one token, ** for any number of tokens; may be given "+
			"several times")
	f.BoolVar(&o.all, "all-hooks", false, "replay calls with side effects, too: the server carries them out again")
	f.Float64Var(&o.rate, "rate", 0, "maximum number of calls per second; 0 sends each call as soon as the "+
		"previous call has been answered")
	f.StringVarP(&o.output, "output", "o", cmdline.FormatTable, "format of the result: table, yaml or json")
	o.AddFlags(f)
	o.Gateway.AddFlags(f)
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{
		"context": target.CompleteContexts(&o.Gateway.Kube), "output": cmdline.CompleteFormats(),
		"hook": cmdline.CompleteHooks(hooks),
	})
	return cmd
}

func (o *replayOptions) run(cmd *cobra.Command, hooks *catalog.Catalog, names []string) error {
	printer, err := cmdline.NewPrinter(o.output)
	if err != nil {
		return err
	}
	config, err := o.config(hooks)
	if err != nil {
		return err
	}
	s, disconnect, err := o.Connect(cmd, config.Codec, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer disconnect()
	targets := &replayTargets{server: s, hooks: hooks, as: o.as, known: map[string]*offered{}}
	config.Target = targets.target
	config.Call = func(ctx context.Context, h *catalog.Hook, handler string, r proto.Message) (proto.Message, error) {
		a, err := s.Call(ctx, h, handler, r)
		if answered := (*target.CallError)(nil); errors.As(err, &answered) {
			return nil, &replay.AnswerError{Err: err}
		}
		if err != nil {
			return nil, err
		}
		return a.Message, nil
	}
	r := replay.New(config)
	for _, name := range names {
		if err := replayFile(cmd, r, name); err != nil {
			return cmdline.IncompleteError{Err: fmt.Errorf("replay %s: %w", target.InputName(name), err)}
		}
	}
	body, err := json.Marshal(r.Result)
	if err != nil {
		return err
	}
	err = printer(cmd.OutOrStdout(), body, func(w io.Writer) error { return printReplay(w, &r.Result) })
	if err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	switch calls := r.Equal + r.Different; {
	case r.Failed > 0:
		return cmdline.IncompleteError{Err: fmt.Errorf("%s could not be replayed", text.Plural(r.Failed, "call"))}
	case r.Different > 0:
		return fmt.Errorf("%d of %s differ", r.Different, text.Plural(calls, "call"))
	case calls == 0:
		return cmdline.IncompleteError{Err: errors.New("no call was replayed")}
	}
	return nil
}

// config returns what the flags say about the replay.
func (o *replayOptions) config(hooks *catalog.Catalog) (c replay.Config, err error) {
	c = replay.Config{Hooks: hooks, Codec: codec.New(hooks), Handler: o.handler, Hook: o.hook, All: o.all}
	if o.as != "" && o.handler == "" {
		return c, cmdline.Usagef("--as needs --handler, which names the handler whose calls are replayed")
	}
	if o.hook != "" {
		h, err := cmdline.HookNamed(hooks, o.hook)
		if err != nil {
			return c, err
		}
		if replay.Acts(h) && !o.all {
			return c, cmdline.Usagef("--hook %s: calls of this hook have side effects, and are replayed only "+
				"with --all-hooks", h.Hook)
		}
	}
	if !(o.rate >= 0 && o.rate <= 1e6) { // NaN is neither
		return c, cmdline.Usagef("--rate: want 0 to 1000000, got %v", o.rate)
	}
	if o.rate > 0 {
		c.Interval = time.Duration(float64(time.Second) / o.rate)
	}
	if c.Ignore, err = redact.ParsePatterns(o.ignore); err != nil {
		return c, cmdline.Usagef("--ignore: %w", err)
	}
	return c, nil
}

func replayFile(cmd *cobra.Command, r *replay.Replay, name string) error {
	if name == "-" {
		return r.File(cmd.Context(), target.InputName(name), cmd.InOrStdin())
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return r.File(cmd.Context(), name, f)
}

// replayTargets finds out how the server names the handlers of records: an extension has its own names, a gateway those
// that are registered.
type replayTargets struct {
	server *target.Server
	hooks  *catalog.Catalog
	as     string
	known  map[string]*offered // by group
}

// offered is what the server's discovery says.
type offered struct {
	isGateway bool
	handlers  map[string]bool // "hook/name" in lower case
	err       error
}

// target implements replay.Config.Target.
func (t *replayTargets) target(ctx context.Context, h *catalog.Hook, r *recording.Record) (string, error) {
	if t.as != "" {
		return t.as, nil
	}
	o, ok := t.known[h.Group]
	if !ok {
		o = t.discover(ctx, h.Group)
		t.known[h.Group] = o
	}
	switch {
	case o.err != nil:
		return "", o.err
	case o.handlers[strings.ToLower(h.Hook+"/"+r.Name)]:
		return r.Name, nil
	case o.isGateway: // which callers know by other names than those of the versions in an ExtensionRollout
		return cmp.Or(r.CalledAs, r.Handler), nil
	}
	return "", fmt.Errorf("the server has no handler %q of this hook: use --handler and --as", r.Name)
}

// discover asks the server which handlers it has.
func (t *replayTargets) discover(ctx context.Context, group string) *offered {
	o := &offered{handlers: map[string]bool{}}
	for _, versions := range t.hooks.Discoveries() {
		if h := versions[0]; h.Group == group {
			a, err := t.server.Call(ctx, h, "", h.Request.New().Interface())
			if err != nil {
				o.err = fmt.Errorf("discover: %w", err)
				return o
			}
			o.isGateway = a.CallID != ""
			d, _ := a.Message.(interface {
				GetHandlers() []*hooksv1alpha1.ExtensionHandler
			})
			if d == nil {
				o.err = fmt.Errorf("discover: %s has no handlers", h)
				return o
			}
			for _, handler := range d.GetHandlers() {
				o.handlers[strings.ToLower(handler.GetRequestHook().GetHook()+"/"+handler.GetName())] = true
			}
			return o
		}
	}
	o.err = fmt.Errorf("group %s has no hook that discovers handlers: use --handler and --as", group)
	return o
}

// printReplay writes a result for people.
func printReplay(w io.Writer, r *replay.Result) error {
	if len(r.Calls) > 0 {
		t := table.New(w)
		t.Optional("CALL", "CLUSTER", "OBJECT")
		t.Columns("CALL", "HOOK", "HANDLER", "CLUSTER", "OBJECT", "PATH", "RECORDED", "NOW")
		for _, c := range r.Calls {
			for _, d := range c.Differences {
				t.Row(fmt.Sprintf("%s:%d", c.File, c.Line), c.Hook, c.Handler, c.Cluster, d.Object, d.Path, d.Recorded, d.Now)
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if r.Omitted > 0 {
			_, _ = fmt.Fprintf(w, "… and %s more\n", text.Plural(r.Omitted, "difference"))
		}
		_, _ = fmt.Fprintln(w)
	}
	for _, note := range r.Notes {
		_, _ = fmt.Fprintln(w, text.Printable(note))
	}
	if r.OmittedNotes > 0 {
		_, _ = fmt.Fprintf(w, "… and %d more\n", r.OmittedNotes)
	}
	calls := text.Plural(r.Equal+r.Different, "call")
	parts := []string{fmt.Sprintf("%s replayed: %d equal, %d different", calls, r.Equal, r.Different)}
	for _, more := range []struct {
		n    int
		what string
	}{
		{r.Failed, "could not be replayed"}, {r.Comparisons, "that compared versions of a rollout left out"},
		{r.Acting, "with side effects left out (--all-hooks)"},
		{r.Unanswered, "without a recorded answer left out"}, {r.Filtered, "not asked for"},
		{r.Redacted, "replayed without values that were redacted, so that their answers may differ"},
	} {
		if more.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", more.n, more.what))
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(parts, "; "))
	return err
}
