// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/recording"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/registry"
)

// recordingOptions are the flags about the recording of calls.
type recordingOptions struct {
	dir    string
	limit  string
	redact []string

	bytes    int64
	redactor *redact.Redactor
}

func (o *recordingOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.dir, "record", "",
		"directory into which the gateway writes the requests and answers of handlers, for hookgate replay, "+
			"without the secrets that it recognizes; created if missing; each gateway needs its own directory; "+
			"without this flag, no files are written")
	f.StringVar(&o.limit, "record-max-bytes", fmt.Sprintf("%dMi", limits.DefaultRecordBytes>>20),
		fmt.Sprintf("total size of the files of --record, such as 512Mi, at least %dMi; beyond it, the oldest "+
			"files are removed",
			limits.LeastRecordBytes>>20))
	f.StringArrayVar(&o.redact, "record-redact", nil,
		"JSON pointer, such as /items/*/object/spec/**/pin, to values that recordings leave out in addition to "+
			"values that look like secrets; * stands for any one token, ** for any number of tokens; may be given "+
			"several times")
}

// check returns an error of usage unless the flags make sense.
func (o *recordingOptions) check() (err error) {
	q, err := resource.ParseQuantity(o.limit)
	if err != nil {
		return cmdline.Usagef("--record-max-bytes: want a quantity such as 512Mi, got %q", o.limit)
	}
	if o.bytes = q.Value(); o.bytes < limits.LeastRecordBytes {
		return cmdline.Usagef("--record-max-bytes: want at least %dMi, got %s", limits.LeastRecordBytes>>20, o.limit)
	}
	if o.redactor, err = redact.NewRedactor(o.redact); err != nil {
		return cmdline.Usagef("--record-redact: %w", err)
	}
	return nil
}

// open returns the recorder of the flags. Without --record, it records what hookgate record asks for.
func (o *recordingOptions) open(
	c *codec.Codec, reg registry.Snapshots, observer recording.Observer, logger *slog.Logger,
) (*recording.Recorder, error) {
	config := recording.Config{
		Codec: c, Redactor: o.redactor, Observer: observer, Logger: logger,
		Registered: func(handler string) (string, error) { return registeredName(reg.Snapshot(), handler) },
	}
	if o.dir == "" {
		return recording.New(config), nil
	}
	var err error
	if config.Files, err = recording.OpenFiles(o.dir, o.bytes); err != nil {
		return nil, fmt.Errorf("--record %s: %w", o.dir, err)
	}
	logger.Warn("Calls are recorded: the files contain the requests and answers of handlers", "record", o.dir,
		"recordMaxBytes", o.limit)
	return recording.New(config), nil
}

// recordings returns what serves the calls of one handler to hookgate record.
func (o *diagnosticsOptions) recordings(
	r *recording.Recorder, guard func(http.Handler) (http.Handler, error),
) (http.Handler, error) {
	if o.insecure && !cmdline.IsLoopback(o.address) {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the gateway runs with --insecure-diagnostics, so it does not record calls on "+
				"request: everyone could read the calls", http.StatusForbidden)
		}), nil
	}
	return guard(r)
}

// registeredName returns the name of a handler that callers know, or of one of a version in an ExtensionRollout, or an
// error if there is none of that name.
func registeredName(s *registry.Snapshot, name string) (string, error) {
	if e, ok := s.Handler(name); ok {
		return e.Name, nil
	}
	if e, ok := s.Registered(strings.ToLower(name)); ok {
		return e.Name, nil
	}
	var names []string
	for _, e := range s.All() {
		names = append(names, e.Name)
	}
	name = text.Cut(name, limits.QuotedBytes)
	if meant := text.Nearest(name, names); meant != "" {
		return "", fmt.Errorf("there is no handler %q: did you mean %q?", name, meant)
	}
	return "", fmt.Errorf("there is no handler %q", name)
}
