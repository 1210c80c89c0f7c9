// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructure "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
)

const (
	success = hooks.ResponseStatus_RESPONSE_STATUS_SUCCESS
	failure = hooks.ResponseStatus_RESPONSE_STATUS_FAILURE
)

type (
	upgrade   = hooks.BeforeClusterUpgradeRequest
	upgraded  = hooks.BeforeClusterUpgradeResponse
	generate  = hooks.GeneratePatchesRequest
	generated = hooks.GeneratePatchesResponse
)

func done(context.Context, *upgrade) (sdk.Answer, error) { return sdk.Done(), nil }

func TestRegistrationMistakes(t *testing.T) {
	for name, tt := range map[string]struct {
		register func(x *sdk.Extension)
		want     string
	}{
		"none": {func(*sdk.Extension) {}, `the extension has no handlers: register one with Handle`},
		"name": {
			func(x *sdk.Extension) { sdk.Handle(x, "approve_upgrade", done) },
			`handler "approve_upgrade": the name is not a DNS-1123 label: want at most 63 characters of a-z, 0-9 and -, such as approve-upgrade`,
		},
		"long name": {
			func(x *sdk.Extension) { sdk.Handle(x, strings.Repeat("a", 64), done) },
			`handler "` + strings.Repeat("a", 64) + `": the name is not a DNS-1123 label: want at most 63 characters of a-z, 0-9 and -, such as approve-upgrade`,
		},
		"twice, and all mistakes": {
			func(x *sdk.Extension) {
				sdk.Handle(x, "a", done)
				sdk.Handle(x, "a", done)
				sdk.Handle(x, "b", done, sdk.Timeout(31*time.Second))
			},
			"handler \"a\": another handler has this name\nhandler \"b\": the timeout 31s is not a whole number of seconds from 0s to 30s",
		},
		"timeout in nanoseconds": {
			func(x *sdk.Extension) { sdk.Handle(x, "a", done, sdk.Timeout(10)) },
			`handler "a": the timeout 10ns is not a whole number of seconds from 0s to 30s`,
		},
		"policy": {
			func(x *sdk.Extension) { sdk.Handle(x, "a", done, sdk.FailurePolicy("ignore")) },
			`handler "a": the failure policy "ignore" is neither "Fail" nor "Ignore"`,
		},
		"version": {
			func(x *sdk.Extension) { sdk.Handle(x, "a", done, sdk.ClusterAPIVersion("v1")) },
			`handler "a": the version of Cluster API's objects "v1" is neither "v1beta1" nor "v1beta2" nor AsSent`,
		},
		"no request": {
			func(x *sdk.Extension) {
				sdk.Handle(x, "a", func(context.Context, *upgraded) (sdk.Answer, error) { return sdk.Done(), nil })
			},
			`handler "a": hookgate.hooks.v1alpha1.BeforeClusterUpgradeResponse is not the request of any hook: want one, such as *BeforeClusterUpgradeRequest`,
		},
		"another response": {
			func(x *sdk.Extension) {
				sdk.HandleResponse(x, "a", func(context.Context, *upgrade) (*generated, error) { return &generated{}, nil })
			},
			`handler "a": BeforeClusterUpgrade answers with BeforeClusterUpgradeResponse, not with GeneratePatchesResponse`,
		},
		"discovery without a response": {
			func(x *sdk.Extension) {
				sdk.Handle(x, "a", func(context.Context, *hooks.DiscoveryRequest) (sdk.Answer, error) { return sdk.Done(), nil })
			},
			`handler "a": Discovery is a discovery hook: register its handler with HandleResponse`,
		},
		"any message": {
			func(x *sdk.Extension) {
				sdk.HandleResponse(x, "a", func(context.Context, *upgrade) (proto.Message, error) { return &upgraded{}, nil })
				sdk.Handle(x, "b", func(context.Context, proto.Message) (sdk.Answer, error) { return sdk.Done(), nil })
			},
			"handler \"a\": the request and response must be pointers to messages from the generated stubs\n" +
				"handler \"b\": the request and response must be pointers to messages from the generated stubs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := &sdk.Extension{}
			tt.register(x)
			if err := x.Err(); err == nil || err.Error() != tt.want {
				t.Errorf("got\n%v\nwant\n%s", err, tt.want)
			}
			if err := x.Serve(t.Context(), sdk.Config{Address: "127.0.0.1:0"}); err == nil || err.Error() != tt.want {
				t.Errorf("Serve: got\n%v\nwant\n%s", err, tt.want)
			}
			if _, err := x.Call(t.Context(), &upgrade{}); status.Code(err) != codes.FailedPrecondition {
				t.Errorf("Call: %v", err)
			}
		})
	}
}

// Several groups of hooks in one extension. test/modules has one that is not the project's.
func TestDiscovery(t *testing.T) {
	x := &sdk.Extension{Logger: quiet}
	sdk.Handle(x, "z-first", done, sdk.Timeout(0), sdk.FailurePolicy("Ignore"), sdk.ClusterAPIVersion("v1beta1"))
	sdk.Handle(x, "a-second", done, sdk.ClusterAPIVersion(sdk.AsSent))
	sdk.Handle(x, "machines", func(context.Context, *infrastructure.DeleteMachineRequest) (sdk.Answer, error) {
		return sdk.Done(), nil
	})
	shared := &infrastructure.DiscoverInfrastructureResponse{ProviderIdPrefix: "acme://"}
	sdk.HandleResponse(x, "parameters", func(
		context.Context, *infrastructure.DiscoverInfrastructureRequest,
	) (*infrastructure.DiscoverInfrastructureResponse, error) {
		return shared, nil
	})

	handler := func(name, apiVersion, hook string) *hooks.ExtensionHandler {
		return &hooks.ExtensionHandler{
			Name: name, RequestHook: &hooks.GroupVersionHook{ApiVersion: apiVersion, Hook: hook},
			TimeoutSeconds: proto.Int32(10), FailurePolicy: hooks.FailurePolicy_FAILURE_POLICY_FAIL, ClusterApiVersion: "v1beta2",
		}
	}
	first := handler("z-first", "hooks.runtime.cluster.x-k8s.io/v1alpha1", "BeforeClusterUpgrade")
	first.TimeoutSeconds, first.ClusterApiVersion = proto.Int32(0), "v1beta1"
	first.FailurePolicy = hooks.FailurePolicy_FAILURE_POLICY_IGNORE
	second := handler("a-second", "hooks.runtime.cluster.x-k8s.io/v1alpha1", "BeforeClusterUpgrade")
	second.ClusterApiVersion = ""
	for _, tt := range []struct{ in, want proto.Message }{
		{&hooks.DiscoveryRequest{}, &hooks.DiscoveryResponse{Status: success, Handlers: []*hooks.ExtensionHandler{first, second}}},
		{&infrastructure.DiscoverInfrastructureRequest{Handler: "machines"}, &infrastructure.DiscoverInfrastructureResponse{
			Status: success, ProviderIdPrefix: "acme://",
			Handlers: []*hooks.ExtensionHandler{handler("machines", "infrastructure.hookgate.dev/v1alpha1", "DeleteMachine")},
		}},
	} {
		for range 2 { // a handler may return the same message each time
			got, err := x.Call(t.Context(), tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("%T (-want +got):\n%s", tt.in, diff)
			}
		}
	}
	if len(shared.GetHandlers()) != 0 || shared.GetStatus() != 0 {
		t.Errorf("the message of the handler was changed: %v", shared)
	}
}

var quiet = slog.New(slog.DiscardHandler)

// What a handler returns, what the caller gets, and what the log has.
func TestAnswers(t *testing.T) {
	const secret = "s3cr3t"
	for name, tt := range map[string]struct {
		run  func(ctx context.Context, in *upgrade) (sdk.Answer, error)
		want *upgraded
		log  []string // in the line of the call
	}{
		"done": {done, &upgraded{Status: success}, []string{`"level":"DEBUG"`, `"msg":"call answered"`}},
		"wait": {
			answer(sdk.Wait(1500*time.Millisecond, "waits")), &upgraded{Status: success, RetryAfterSeconds: 2, Message: "waits"},
			[]string{`"level":"DEBUG"`, `"msg":"call answered"`},
		},
		"wait of nanoseconds": {
			answer(sdk.Wait(30, "waits")),
			&upgraded{Status: failure, Message: `handler "h": Wait of 30ns: want at least a second, such as Wait(30*time.Second, …)`},
			[]string{`"level":"INFO"`},
		},
		"wait without a message": {
			answer(sdk.Wait(time.Second, "")),
			&upgraded{Status: failure, Message: `handler "h": Wait without a message: say what the handler waits for`}, nil,
		},
		"failure": {
			func(context.Context, *upgrade) (sdk.Answer, error) { return nil, sdk.Failf("quota of %s", "c1") },
			&upgraded{Status: failure, Message: "quota of c1"}, []string{`"level":"INFO"`, `"kind":"Failure"`, `"error":"quota of c1"`},
		},
		"wrapped failure": {
			func(context.Context, *upgrade) (sdk.Answer, error) {
				return nil, fmt.Errorf("check: %w", sdk.Failf("quota"))
			},
			&upgraded{Status: failure, Message: "check: quota"}, nil,
		},
		"nothing": {
			func(context.Context, *upgrade) (sdk.Answer, error) { return nil, nil },
			&upgraded{Status: failure, Message: `handler "h" gave no answer: it has to return Done, Wait, Patches or an error`},
			[]string{`"level":"ERROR"`},
		},
		"other error": {
			func(context.Context, *upgrade) (sdk.Answer, error) { return nil, errors.New(secret) },
			&upgraded{Status: failure, Message: `handler "h": internal error (*errors.errorString); search the log of the extension for the call's id`},
			[]string{`"level":"ERROR"`, `"error":"` + secret + `"`},
		},
		"error of a backend over gRPC": {
			func(context.Context, *upgrade) (sdk.Answer, error) {
				return nil, fmt.Errorf("ask: %w", status.Error(codes.Unimplemented, secret))
			},
			&upgraded{Status: failure, Message: `handler "h": internal error (*fmt.wrapError); search the log of the extension for the call's id`}, nil,
		},
		"panic": {
			func(context.Context, *upgrade) (sdk.Answer, error) {
				panic(errors.New(secret))
			},
			&upgraded{Status: failure, Message: `handler "h": internal error (*errors.errorString); search the log of the extension for the call's id`},
			[]string{`"level":"ERROR"`, `"error":"` + secret + `"`, `"stack":"goroutine `, "extension_test.go"},
		},
		"patches of a hook without patches": {
			func(_ context.Context, in *upgrade) (sdk.Answer, error) { return sdk.NewPatches(in), nil },
			&upgraded{Status: failure, Message: `handler "h": internal error (*errors.errorString); search the log of the extension for the call's id`},
			[]string{`BeforeClusterUpgradeRequest has no items with an object to patch`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			x := &sdk.Extension{Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
			sdk.Handle(x, "h", tt.run)
			ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("hookgate-call-id", "c-1"))
			got, err := x.Call(ctx, &upgrade{Settings: map[string]string{"token": "t0k3n"}, ToKubernetesVersion: "v1.36.1"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			line := log.String()
			for _, part := range append(tt.log, `"hook":"BeforeClusterUpgrade"`, `"handler":"h"`, `"call_id":"c-1"`, `"took":`) {
				if !strings.Contains(line, part) {
					t.Errorf("the log has no %s:\n%s", part, line)
				}
			}
			if strings.Count(line, "\n") != 1 || strings.Contains(line, "t0k3n") || strings.Contains(line, "v1.36.1") {
				t.Errorf("the log is not one line without the request:\n%s", line)
			}
		})
	}
}

func answer(a sdk.Answer) func(context.Context, *upgrade) (sdk.Answer, error) {
	return func(context.Context, *upgrade) (sdk.Answer, error) { return a, nil }
}

// A hook whose caller cannot be held.
func TestWaitWithoutRetry(t *testing.T) {
	x := &sdk.Extension{Logger: quiet}
	sdk.Handle(x, "h", func(context.Context, *generate) (sdk.Answer, error) { return sdk.Wait(time.Second, "waits"), nil })
	got, err := x.Call(t.Context(), &generate{})
	want := &generated{Status: failure, Message: `handler "h": GeneratePatches cannot wait: its response has no retry_after_seconds`}
	if diff := cmp.Diff(proto.Message(want), got, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestResponses(t *testing.T) {
	for name, tt := range map[string]struct{ out, want *upgraded }{
		"status left out": {&upgraded{RetryAfterSeconds: 5}, &upgraded{Status: success, RetryAfterSeconds: 5}},
		"failure":         {&upgraded{Status: failure, Message: "no"}, &upgraded{Status: failure, Message: "no"}},
		"nil": {nil, &upgraded{
			Status: failure, Message: `handler "h" gave no answer: it has to return Done, Wait, Patches or an error`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			x := &sdk.Extension{Logger: quiet}
			sdk.HandleResponse(x, "h", func(context.Context, *upgrade) (*upgraded, error) { return tt.out, nil })
			got, err := x.Call(t.Context(), &upgrade{})
			if diff := cmp.Diff(proto.Message(tt.want), got, protocmp.Transform()); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestStatuses(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	several := func(x *sdk.Extension) {
		sdk.Handle(x, "one", done)
		sdk.Handle(x, "two", done)
	}
	one := func(err error) func(x *sdk.Extension) {
		return func(x *sdk.Extension) {
			sdk.Handle(x, "one", func(context.Context, *upgrade) (sdk.Answer, error) { return nil, err })
		}
	}
	for name, tt := range map[string]struct {
		register func(x *sdk.Extension)
		ctx      context.Context
		in       proto.Message
		code     codes.Code
		text     string
	}{
		"unknown handler": {several, t.Context(), &upgrade{Handler: "three"}, codes.NotFound, `no handler of BeforeClusterUpgrade is named "three": name one of one, two`},
		"which handler":   {several, t.Context(), &upgrade{}, codes.InvalidArgument, `BeforeClusterUpgrade has several handlers: name one of one, two`},
		"no handler":      {several, t.Context(), &hooks.AfterClusterUpgradeRequest{}, codes.Unimplemented, `no handler of the extension takes hookgate.hooks.v1alpha1.AfterClusterUpgradeRequest`},
		"own status":      {one(status.Error(codes.InvalidArgument, "cluster: no")), t.Context(), &upgrade{}, codes.InvalidArgument, "cluster: no"},
		"caller is gone":  {one(errors.New("any")), canceled, &upgrade{}, codes.Canceled, "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			x := &sdk.Extension{Logger: quiet}
			tt.register(x)
			out, err := x.Call(tt.ctx, tt.in) //nolint:contextcheck // it is the test's
			if s := status.Convert(err); s.Code() != tt.code || s.Message() != tt.text || out != nil {
				t.Errorf("got %v, %v, want %s: %s", out, err, tt.code, tt.text)
			}
		})
	}
	x := &sdk.Extension{Logger: quiet}
	several(x)
	if out, err := x.Call(t.Context(), &upgrade{Handler: "two"}); err != nil {
		t.Errorf("a handler by its name: %v, %v", out, err)
	}
}
