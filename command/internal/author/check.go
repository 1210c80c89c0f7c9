// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/conformance"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/table"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/codec"
)

// formatJUnit is a format of -o that only checks have.
const formatJUnit = "junit"

// checkOptions are the flags of hookgate check.
type checkOptions struct {
	target.ClientOptions
	only, skip []string
	requests   []string
	provides   string
	objects    string
	output     string
	list       bool
	strict     bool
	verbose    bool
	watches    bool
	wait       time.Duration
}

// maxWait is the longest time of --wait.
const maxWait = 10 * time.Minute

var (
	// errNotConforming is the error of a check that has found something, and errNothingChecked of one that had nothing
	// to look at.
	errNotConforming  = errors.New("the extension does not conform to the contract")
	errNothingChecked = errors.New("nothing was checked: none of the selected checks applies to the extension; -v " +
		"prints the reasons")
)

// NewCheckCommand returns the command hookgate check.
func NewCheckCommand(hooks *catalog.Catalog) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check URL",
		Short: "Check that an extension conforms to the contract",
		Long: "Check an extension from outside: discover its handlers, call each with realistic and with wrong\n" +
			"requests, and check the answers against the rules of the Runtime SDK. --list lists the checks.\n\n" +
			"URL is https://HOST:PORT for REST; grpcs://HOST:PORT, grpc://HOST:PORT on loopback, or\n" +
			"unix:///PATH for gRPC.\n\n" +
			"The command calls every handler several times with made-up objects, including the handlers of\n" +
			"UpdateMachine and BeforeClusterDelete. Check an instance that takes no real action. With\n" +
			"--infrastructure, the checks also make a cluster, a machine, and a pool of two machines in the real\n" +
			"backend, and delete them at the end. --watch repeats the checks whenever the extension restarts, and\n" +
			"prints what has changed.\n\n" +
			"The exit status is 0 if no MUST rule is broken, 1 if a MUST rule is broken or nothing was checked,\n" +
			"and 2 for wrong usage.\n" +
			"After Ctrl-C, the command prints the results so far and the checks that were not run, and the exit\n" +
			"status is 1; with --watch, the last results decide the exit status.",
		Example: "  hookgate check https://127.0.0.1:9442 --ca dev-ca.crt\n" +
			"  hookgate check unix:///run/extension.sock --skip protocol.health\n" +
			"  hookgate check grpc://127.0.0.1:9090 --watch\n" +
			"  hookgate check grpc://127.0.0.1:9090 --only patches,determinism -o junit > check.xml",
		Args: func(_ *cobra.Command, args []string) error {
			if want := map[bool]int{true: 0, false: 1}[o.list]; len(args) != want {
				return cmdline.Usagef("want %s, got %d arguments",
					map[bool]string{true: "no URL with --list", false: "one URL"}[o.list], len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.list {
				return o.printChecks(cmd.OutOrStdout())
			}
			return o.run(cmd, hooks, args[0])
		},
	}
	f := cmd.Flags()
	o.AddCredentialFlags(f)
	f.StringSliceVar(&o.only, "only", nil,
		"checks to run: identifiers, families such as \"patches\", or patterns such as \"*.scope\"")
	f.StringSliceVar(&o.skip, "skip", nil, "checks to leave out, even if --only names them; same form as --only")
	f.StringArrayVar(&o.requests, "request", nil,
		"HOOK=FILE, a request in YAML or JSON to send instead of the built-in one; may be given several times")
	f.StringVar(&o.provides, "infrastructure", "",
		"FILE in YAML or JSON with the parameters and credentials for the infrastructure that the checks make and "+
			"delete: cluster, machine, machinePool, credentials, version, bootstrap, waitSeconds")
	f.StringVar(&o.objects, "cluster-api-version", "",
		"version of Cluster API objects to send: v1beta1 or v1beta2. By default, the version that a gRPC "+
			"extension states; for other extensions, requests are sent unchanged (the built-in requests have v1beta2)")
	f.StringVarP(&o.output, "output", "o", cmdline.FormatTable,
		"format of the results: table, which lists the findings; json; or junit, XML for CI systems")
	f.BoolVar(&o.list, "list", false, "print the checks without running them")
	f.BoolVar(&o.strict, "strict", false, "treat broken rules of the level SHOULD like broken rules of the level MUST")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "also print the checks that pass or do not apply")
	f.BoolVar(&o.watches, "watch", false,
		"check again whenever the extension restarts or its answer to Discovery changes, until Ctrl-C; the exit status is "+
			"that of the last results, or 1 if the extension is down")
	f.DurationVar(&o.wait, "wait", 0,
		"how long to wait for an extension that is just starting and cannot be reached yet, at most 10m")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "how long one run of all checks may take")
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"only": completeChecks(), "skip": completeChecks()})
	return cmd
}

func (o *checkOptions) run(cmd *cobra.Command, hooks *catalog.Catalog, url string) error {
	switch o.output {
	case cmdline.FormatTable, cmdline.FormatJSON, formatJUnit:
	default:
		return cmdline.Usagef("--output %q: want table, json or junit", o.output)
	}
	if o.watches && o.output != cmdline.FormatTable {
		return cmdline.Usagef("--watch prints tables only: want --output table, got %s", o.output)
	}
	if o.objects != "" {
		if err := hook.CheckClusterAPIVersion(o.objects); err != nil {
			return cmdline.Usagef("--cluster-api-version: %w", err)
		}
	}
	if o.Timeout <= 0 {
		return cmdline.Usagef("--timeout: want more than 0, got %s", o.Timeout)
	}
	if o.wait < 0 || o.wait > maxWait {
		return cmdline.Usagef("--wait: want 0 to %s, got %s", maxWait, o.wait)
	}
	target := conformance.Target{URL: url}
	var err error
	if target.CA, target.Certificate, err = o.Credentials(); err != nil {
		return err
	}
	if target.Token, err = o.Bearer(); err != nil {
		return err
	}
	requests, err := o.readRequests(cmd.InOrStdin(), hooks, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	infrastructure, err := o.readInfrastructure(cmd.InOrStdin())
	if err != nil {
		return err
	}
	progress := newProgressLine(cmd.ErrOrStderr())
	defer progress.close()
	run := func(ctx context.Context) (conformance.Report, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not done within %s", o.Timeout))
		defer cancel()
		progress.show("waiting for the answer to Discovery")
		defer progress.show("")
		report, err := conformance.Run(ctx, target, conformance.Options{
			Catalog: hooks, Only: o.only, Skip: o.skip, Requests: requests, ClusterAPIVersion: o.objects,
			Infrastructure: infrastructure, Starting: progress.starting,
		})
		if err == nil && len(report.Results) == 0 {
			err = cmdline.Usagef("--only and --skip select no check; see hookgate check --list")
		}
		return report, err
	}
	if o.Server = url; o.wait > 0 {
		progress.show("waiting for the extension")
		if err := o.await(cmd.Context(), hooks); err != nil {
			return err
		}
	}
	if o.watches {
		return o.watch(cmd, hooks, progress, run)
	}
	report, err := run(cmd.Context())
	if err != nil && len(report.Results) == 0 {
		return o.checkError(err)
	}
	if err := o.print(cmd.OutOrStdout(), &report); err != nil {
		return fmt.Errorf("print results: %w", err)
	}
	if err != nil {
		return err
	}
	return o.verdict(&report)
}

// await waits for an extension that is just starting. If it does not come, the checks say why.
func (o *checkOptions) await(ctx context.Context, hooks *catalog.Catalog) error {
	r, err := o.newRestarts(hooks)
	if err != nil {
		return err
	}
	defer r.close()
	r.await(ctx, o.wait)
	return nil
}

// verdict returns the error of a whole run, which decides the exit status.
func (o *checkOptions) verdict(report *conformance.Report) error {
	switch {
	case report.Conforms(o.strict):
		return nil
	case report.Count("", conformance.Skip) == len(report.Results):
		return errNothingChecked
	}
	return errNotConforming
}

// checkError separates mistakes in the command line from failures.
func (o *checkOptions) checkError(err error) error {
	var (
		selection *conformance.SelectionError
		target    *conformance.TargetError

		unconnected *conformance.ConnectError
	)
	switch {
	case errors.As(err, &selection):
		flag := "--only"
		if slices.Contains(o.skip, selection.Pattern) && !slices.Contains(o.only, selection.Pattern) {
			flag = "--skip"
		}
		return cmdline.Usagef("%s: %w; see hookgate check --list", flag, err)
	case errors.As(err, &unconnected): // its hints name fields of a Target, too
		unconnected.Hint = strings.NewReplacer(", or Target.CA", "", ", or Target.Certificate", "").Replace(unconnected.Hint)
	case errors.As(err, &target):
		return cmdline.Usagef("%w", err)
	}
	return err
}

// readRequests reads the files of --request.
func (o *checkOptions) readRequests(
	in io.Reader, hooks *catalog.Catalog, warnings io.Writer,
) (map[string][]byte, error) {
	mandated := codec.New(hooks)
	requests := map[string][]byte{}
	for _, r := range o.requests {
		name, file, ok := strings.Cut(r, "=")
		h, known := hooks.ByName(name)
		if !ok || !known || file == "" {
			return nil, cmdline.Usagef("--request %q: want HOOK=FILE; the hooks are %s", r, cmdline.HookNames(hooks))
		}
		message, err := target.ReadRequest(in, file, h, mandated, warnings)
		if err != nil {
			return nil, err
		}
		body, err := mandated.Append(nil, message)
		if err != nil {
			return nil, fmt.Errorf("read request %s: %w", file, err)
		}
		requests[h.Hook] = body
	}
	return requests, nil
}

// readInfrastructure reads the file of --infrastructure. Its mistakes are not quoted, because it has credentials.
func (o *checkOptions) readInfrastructure(in io.Reader) (*conformance.Infrastructure, error) {
	if o.provides == "" {
		return nil, nil
	}
	body, err := target.ReadJSON(in, o.provides)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	infrastructure := &conformance.Infrastructure{}
	if err := d.Decode(infrastructure); err != nil {
		return nil, cmdline.Usagef("--infrastructure %s: %w", o.provides, err)
	}
	return infrastructure, nil
}

func (o *checkOptions) print(w io.Writer, report *conformance.Report) error {
	switch o.output {
	case cmdline.FormatJSON:
		return report.WriteJSON(w, o.strict)
	case formatJUnit:
		return report.WriteJUnit(w, o.strict)
	}
	return report.WriteTable(w, o.verbose)
}

// printChecks prints the checks, for --list.
func (o *checkOptions) printChecks(w io.Writer) error {
	switch o.output {
	case cmdline.FormatJSON:
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{"checks": conformance.Checks()})
	case cmdline.FormatTable:
	default:
		return cmdline.Usagef("--list prints a table or json: want --output table or json, got %s", o.output)
	}
	return cmdline.NewScreen(w).Write(false, func(w io.Writer) error {
		t := table.New(w)
		t.Fold()
		t.Row("CHECK", "LEVEL", "RULE")
		for _, c := range conformance.Checks() {
			t.Row(c.ID, string(c.Level), c.Rule)
		}
		return t.Flush()
	})
}

// completeChecks completes the identifiers of checks, and their families.
func completeChecks() cmdline.Completion {
	return cmdline.Complete(func(*cobra.Command, []string) []string {
		var names []string
		for _, c := range conformance.Checks() {
			family, _, _ := strings.Cut(c.ID, ".")
			names = append(names, c.ID, family)
		}
		slices.Sort(names)
		return slices.Compact(names)
	})
}
