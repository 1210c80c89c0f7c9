// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/recording"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
)

// recordOptions are the flags of hookgate record.
type recordOptions struct {
	target.StatusOptions
	duration time.Duration
	file     string
	limit    string
}

// NewRecordCommand returns the command hookgate record.
func NewRecordCommand() *cobra.Command {
	var o recordOptions
	cmd := &cobra.Command{
		Use:   "record HANDLER",
		Short: "Record the calls of one handler of a running gateway",
		Long: "Write the calls that a gateway makes to one handler into a file, until the time of --for has\n" +
			"passed, the file has the size of --max-bytes, or you press Ctrl-C. The gateway need not\n" +
			"run with --record. Before the gateway sends a call to this command, it removes\n" +
			"the secrets that it recognizes. \"hookgate replay\" reads the file.\n\n" +
			"If a gateway in a cluster has several replicas, --gateway NAMESPACE/POD names the replica to record.",
		Example: "  hookgate record patch.acme --for 10m\n" +
			"  hookgate record patch.acme --context management -f before.jsonl",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cmdline.Usagef("want the name of one handler, see \"hookgate get handlers\"; got %d names", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := o.AddFlags(cmd)
	f.DurationVar(&o.duration, "for", 10*time.Minute, "how long to record, at most "+limits.RecordStreamTime.String())
	f.StringVarP(&o.file, "file", "f", "",
		"file to write, which must not exist yet; default: hookgate-calls-TIME.jsonl")
	f.StringVar(&o.limit, "max-bytes", "256Mi", "size of the file, such as 512Mi, at which recording ends")
	return cmd
}

func (o *recordOptions) run(cmd *cobra.Command, handler string) error {
	size, err := resource.ParseQuantity(o.limit)
	if err != nil {
		return cmdline.Usagef("--max-bytes: want a quantity such as 512Mi, got %q", o.limit)
	}
	order := recording.Order{Handler: handler, For: o.duration, Bytes: size.Value()}
	if err := order.Check(); err != nil {
		return cmdline.Usagef("record %s for %s, %s: %w", handler, o.duration, o.limit, err)
	}
	return o.Ask(cmd, func(c *target.StatusClient) error { return o.record(cmd, c, order) })
}

// record makes the file, and writes what the gateway sends into it. There is none if the gateway refuses.
func (o *recordOptions) record(cmd *cobra.Command, c *target.StatusClient, order recording.Order) (err error) {
	path := cmp.Or(o.file, "hookgate-calls-"+time.Now().UTC().Format("20060102-150405")+".jsonl")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("record %s: %w", order.Handler, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	silence := time.AfterFunc(o.Timeout, func() { cancel(fmt.Errorf("no answer within %s", o.Timeout)) })
	defer silence.Stop()
	response, err := c.Do(ctx, http.MethodPost, recording.Path, order.Query())
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, limits.MergedMessageBytes))
		return errors.Join(c.Refusal(response.StatusCode, body, "handler"), os.Remove(path))
	}
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "recording %s of gateway %s into %s for %s; Ctrl-C ends the recording\n",
		order.Handler, c.Name(), path, order.For)
	p, err := copyCalls(file, response.Body, order.Bytes, func() { silence.Reset(limits.RecordStreamSilence) })
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, %d dropped\n", path, text.Plural(p.Recorded, "call"), p.Dropped)
	switch {
	case cmd.Context().Err() != nil: // Ctrl-C
		return nil
	case context.Cause(ctx) != nil:
		return fmt.Errorf("record %s: gateway %s sent nothing for %s", order.Handler, c.Name(),
			limits.RecordStreamSilence)
	case err != nil:
		return fmt.Errorf("record %s: %w", order.Handler, err)
	case p.Ended == "":
		return fmt.Errorf("record %s: the gateway ended the recording early", order.Handler)
	}
	return nil
}

// copyCalls copies the calls of a stream, and returns how many it has copied and the gateway has dropped. It calls
// alive whenever it has heard of the gateway.
func copyCalls(to io.Writer, from io.Reader, most int64, alive func()) (p recording.Progress, err error) {
	out := bufio.NewWriter(to)
	defer func() { err = errors.Join(err, out.Flush()) }()
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), limits.RecordLineBytes+1)
	lines.Split(wholeLine)
	for lines.Scan() {
		alive()
		line := lines.Bytes()
		if said, ok := recording.ProgressOf(line); ok {
			p.Dropped, p.Ended = said.Dropped, said.Ended
			if err := out.Flush(); err != nil {
				return p, err
			}
			continue
		}
		if most -= int64(len(line)); most < 0 {
			return p, errors.New("the gateway has sent more than it was asked for")
		}
		if _, err := out.Write(line); err != nil {
			return p, err
		}
		p.Recorded++
	}
	return p, lines.Err()
}

// wholeLine splits a text into lines with their ends. A connection that breaks leaves a part of a line, which is none.
func wholeLine(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if end := bytes.IndexByte(data, '\n') + 1; end > 0 {
		return end, data[:end], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}
