// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/test/process"
)

// registerAgain registers the handler v.acme for another extension, at the same address.
func (f *fixture) registerAgain(t *testing.T, name string) {
	t.Helper()
	for _, reg := range f.registry.Snapshot().Registrations() {
		if reg.Name == "acme" {
			again := *reg
			again.Name = name
			if err := f.registry.Apply(again); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Callers that send large requests to an extension that hangs get Overloaded as soon as its share is used up, while calls
// to another extension are answered, and the memory of all of them stays within the budget.
func TestHangingExtensionTakesOnlyItsShare(t *testing.T) {
	f := newFixture(t, nil)
	hang := make(chan struct{})
	release := sync.OnceFunc(func() { close(hang) })
	defer release()
	f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		if n > 10<<20 {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, `{"status":"Success"}`)
	})
	f.registerAgain(t, "quick")
	body := sized(19 << 20)
	client := overHTTP1(f)
	const callers = 40
	var refused, other atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			resp, err := client.Post(f.rest.URL+createPath+"/v.acme?timeout=30s", "application/json", strings.NewReader(body))
			if err != nil {
				return // the gateway closes connections on which it does not read the body
			}
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
			if resp.Header.Get(ErrorKindHeader) != hook.Overloaded.String() {
				other.Add(1)
				return
			}
			if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
				t.Errorf("got %s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
			}
			refused.Add(1)
		})
	}
	limit := f.memory.Usage().Limit
	for deadline := time.Now().Add(2 * time.Minute); refused.Load() < callers/2; time.Sleep(time.Millisecond) {
		if used := f.memory.Usage().Used; used > limit {
			t.Fatalf("%d MiB are reserved, of %d", used>>20, limit>>20)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d calls were refused, %d got another answer: %+v", refused.Load(), other.Load(), f.memory.Usage())
		}
	}
	// The caller's share has room for another extension.
	if resp := f.post(t, createPath+"/v.quick", sized(1<<20)); resp.code != http.StatusOK {
		t.Errorf("another extension: got %s: %.300s", resp.status, resp.body)
	}
	release()
	wg.Wait()
	if refused.Load()+other.Load() == 0 || f.memory.Usage().Refused["extension"] == 0 {
		t.Errorf("%+v", f.memory.Usage())
	}
}

// A call that waits for memory does not keep others of its connection waiting, although it does not read its body.
func TestWaitingCallsDoNotHoldUpTheirConnection(t *testing.T) {
	f := newFixture(t, nil)
	f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"status":"Success"}`)
	})
	post := func(body string) string {
		resp, err := f.rest.Client().Post(f.rest.URL+createPath+"/v.acme", "application/json", strings.NewReader(body))
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.Proto + " " + resp.Status
	}
	const want = "HTTP/2.0 200 OK"
	if got := post(createBody); got != want {
		t.Fatalf("the first call: %s", got)
	}
	waited := func() bool { // reports whether the large call waited for as long as the others took
		other, err := f.memory.Reserve(t.Context(), budget.Caller("other"), f.memory.Usage().Limit*8/10)
		if err != nil {
			t.Fatal(err)
		}
		large := make(chan string, 1)
		go func() { large <- post(sized(19 << 20)) }()
		process.Eventually(t, "the large call waits for memory, or has", func() bool {
			return f.memory.Usage().Waiting > 0 || len(large) > 0
		})
		for range 3 {
			if got := post(sized(32 << 10)); got != want {
				t.Errorf("beside a call that waits: %s", got)
			}
		}
		other.Release()
		got := <-large
		if got != want && !strings.HasSuffix(got, "503 Service Unavailable") { // it does not wait for more than 5 s
			t.Errorf("the call that waited: %s", got)
		}
		return got == want
	}
	// On a busy machine, the others may take longer than it waits.
	process.Eventually(t, "calls are answered beside one that waits", waited)
}

// overHTTP1 returns a client that has a connection for each call, so that calls that wait do not hold others up.
func overHTTP1(f *fixture) *http.Client {
	transport := f.rest.Client().Transport.(*http.Transport).Clone()
	transport.Protocols = &http.Protocols{}
	transport.Protocols.SetHTTP1(true)
	transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
	return &http.Client{Transport: transport}
}

// What comes back small from the wire, and is large or much in memory, allocates little, over both fronts, and the
// gateway answers the next call.
func TestBombsAllocateLittle(t *testing.T) {
	f := newFixture(t, nil)
	f.understands = "v1beta1"
	f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"status":"Success"}`)
	})
	deployments := func(n int) string {
		return `{"kind":"BeforeClusterCreateRequest","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","cluster":` +
			`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c"},"spec":{"topology":{"workers":` +
			`{"machineDeployments":[` + strings.TrimSuffix(strings.Repeat("{},", n), ",") + `]}}}}}`
	}
	patches := hooksv1alpha1.NewTopologyMutationHooksServiceClient(f.conn)
	items := make([]*hooksv1alpha1.GeneratePatchesRequestItem, 5_000_000)
	none := &hooksv1alpha1.GeneratePatchesRequestItem{}
	for i := range items {
		items[i] = none
	}
	send := func(path, body string) func() string {
		packed := zipped(t, strings.NewReader(body))
		return func() string {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.rest.URL+path, strings.NewReader(packed))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Encoding", "gzip")
			resp, err := f.rest.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
			return resp.Header.Get(ErrorKindHeader)
		}
	}
	const mostMiB = 256
	for name, bomb := range map[string]func() string{
		"Items":         send(patchesPath, emptyItems(6_900_000)),
		"Converted":     send(createPath+"/v.acme", deployments(300_000)),
		"ConvertedMany": send(createPath+"/v.acme", deployments(6_900_000)),
		"gRPC": func() string {
			_, err := patches.GeneratePatches(t.Context(), &hooksv1alpha1.GeneratePatchesRequest{Items: items})
			if status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "request "+tooMany) {
				return hook.TooLarge.String()
			}
			return fmt.Sprint(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			kind := bomb()
			runtime.ReadMemStats(&after)
			if kind != hook.TooLarge.String() {
				t.Errorf("got %q", kind)
			}
			if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > mostMiB {
				t.Errorf("%d MiB were allocated, want at most %d", allocated, mostMiB)
			}
			if resp := f.post(t, createPath+"/v.acme", createBody); resp.code != http.StatusOK {
				t.Errorf("the next call: got %s: %s", resp.status, resp.body)
			}
		})
	}
}

// A message over gRPC is inflated in the memory of its call: one that is within the limits is answered, compressed as
// well, and one for which there is no memory is refused without being inflated.
func TestGRPCMessagesAreInflatedWithinTheBudget(t *testing.T) {
	f := newFixture(t, nil)
	f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"status":"Success"}`)
	})
	call := func(size int, timeout time.Duration) (code codes.Code, text string, allocated uint64) {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		request := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{
			Raw: []byte(`{"kind":"Cluster","metadata":{"name":"c","namespace":"n"}` + strings.Repeat(" ", size) + `}`),
		}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(ctx, request,
			grpc.UseCompressor("gzip"))
		runtime.ReadMemStats(&after)
		return status.Code(err), status.Convert(err).Message(), after.TotalAlloc - before.TotalAlloc
	}
	const large = 19 << 20
	for _, size := range []int{10, 100 << 10, large} {
		if code, text, _ := call(size, time.Minute); code != codes.OK {
			t.Errorf("%d bytes: got %s: %s", size, code, text)
		}
	}
	if code, text, _ := call(BodyBytes, time.Minute); code != codes.ResourceExhausted || text != "request is larger than 20 MiB" {
		t.Errorf("beyond the limit: got %s: %s", code, text)
	}
	other, err := f.memory.Reserve(t.Context(), budget.Caller("other"), f.memory.Usage().Limit*9/10)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Release()
	// The request of the client itself, in one piece for gRPC, and what is inflated up to the reservation that is refused.
	code, text, allocated := call(large, time.Second)
	if refused := code == codes.ResourceExhausted || code == codes.DeadlineExceeded; !refused || allocated > 3*large {
		t.Errorf("without memory: got %s: %s; %d MiB were allocated", code, text, allocated>>20)
	}
	if code, text, _ := call(10, time.Minute); code != codes.OK {
		t.Errorf("a small message without memory: got %s: %s", code, text)
	}
}

// An answer that outgrows 20 MiB on its way to the caller is BadResponse, over both fronts, and one that does not is
// answered: over REST control characters take six bytes each, and the answers of two handlers are merged.
func TestAnswersThatGrow(t *testing.T) {
	f := newFixture(t, nil)
	var calls atomic.Int64
	var unknown func(call int64) (name, raw string)
	f.registerStubs(t, hook.Fail, 30*time.Second, stubs{create: func(context.Context, *hooksv1alpha1.BeforeClusterCreateRequest) (
		*hooksv1alpha1.BeforeClusterCreateResponse, error,
	) {
		name, raw := unknown(calls.Add(1))
		return &hooksv1alpha1.BeforeClusterCreateResponse{
			Status: success, UnknownMembers: map[string]*hooksv1alpha1.JSON{name: {Raw: []byte(raw)}},
		}, nil
	}})
	const refusal = "answer, encoded for the caller, is larger than 20 MiB"
	unknown = func(int64) (string, string) { return "x", "1" }
	overhead := len(f.post(t, createPath+"/v.acme", createBody).body) - 1
	for n, allowed := range map[int]bool{BodyBytes - overhead: true, BodyBytes - overhead + 1: false} {
		unknown = func(int64) (string, string) { return strings.Repeat("\x01", n/6) + strings.Repeat("x", n%6), "1" }
		resp := f.post(t, createPath+"/v.acme", createBody)
		if allowed && (resp.code != http.StatusOK || len(resp.body) != BodyBytes) ||
			!allowed && (resp.code != http.StatusBadGateway || !strings.Contains(string(resp.body), refusal)) {
			t.Errorf("REST, %d bytes: got %s, %d bytes: %.200s", n+overhead, resp.status, len(resp.body), resp.body)
		}
	}
	f.registerAgain(t, "beta")
	for n, want := range map[int]codes.Code{9 << 20: codes.OK, 11 << 20: codes.Unavailable} {
		unknown = func(call int64) (string, string) {
			return strconv.FormatInt(call, 10), `"` + strings.Repeat("x", n) + `"`
		}
		_, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(t.Context(),
			&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
		if st := status.Convert(err); st.Code() != want || err != nil && st.Message() != refusal {
			t.Errorf("gRPC, 2 × %d bytes: got %.200v", n, err)
		}
	}
}
