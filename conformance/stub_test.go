// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
)

// stub is an extension that keeps all rules until a test changes one of its fields.
type stub struct {
	// handlers are announced; each is named as its hook in lower case.
	handlers []*hooksv1alpha1.ExtensionHandler
	// discover may change the nth answer of Discovery, from 1.
	discover func(n int, out *hooksv1alpha1.DiscoveryResponse)
	// before is asked first; its answer or error is taken instead, if there is one.
	before func(ctx context.Context, h *catalog.Hook, in proto.Message) (proto.Message, error)
	// answer may change an answer.
	answer func(h *catalog.Hook, in, out proto.Message)
	// body may change the JSON of an answer, over REST.
	body func(h *catalog.Hook, body []byte) []byte
	// serve, if set, wraps the REST server.
	serve func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc)
	// readsAll takes requests that cannot be read for empty ones.
	readsAll bool
	limit    int

	backend *backend // provides infrastructure; nil provides none

	plain    bool // without TLS
	tls      func(*tls.Config)
	notAfter time.Time
	named    string // has a certificate of its own, for this name alone

	unix     bool // serve gRPC on a socket
	http2    bool // serve REST over HTTP/2, too
	noHealth bool
	notReady bool
	reflect  func(*grpc.Server) // adds server reflection; by default the usual one
	unknown  grpc.StreamHandler
	noSuch   map[string]bool // services that are not there

	clock    clock
	shortest time.Duration // as in Target

	mu          sync.Mutex
	discoveries int
	calls       int
}

// clock times the answers of a stub. It stands still unless the stub advances it: how quick a busy machine is does not
// matter.
type clock struct{ passed atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.passed.Load()) }
func (c *clock) advance(d time.Duration) { c.passed.Add(int64(d)) }

// hooks and mandated are immutable.
var (
	hooks    = allHooks()
	mandated = codec.New(hooks)
)

func allHooks() *catalog.Catalog {
	c, err := catalog.With(catalog.Infrastructure()...)
	if err != nil {
		panic(err)
	}
	return c
}

func newStub() *stub {
	s := &stub{limit: limits.BodyBytes, notAfter: time.Now().Add(60 * 24 * time.Hour)}
	for _, h := range hooks.Hooks() {
		if h.Group == hook.Group && !h.Singleton() {
			s.handlers = append(s.handlers, announce(h.Hook))
		}
	}
	return s
}

func announce(name string) *hooksv1alpha1.ExtensionHandler {
	return &hooksv1alpha1.ExtensionHandler{
		Name: strings.ToLower(name), RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: hook.APIVersion, Hook: name},
		TimeoutSeconds: proto.Int32(20), FailurePolicy: hooksv1alpha1.FailurePolicy_FAILURE_POLICY_FAIL,
	}
}

// only leaves the handlers of these hooks.
func (s *stub) only(hooks ...string) {
	s.handlers = nil
	for _, name := range hooks {
		s.handlers = append(s.handlers, announce(name))
	}
}

// count counts the calls of handlers, from 1.
func (s *stub) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return s.calls
}

// reply answers a request as a good extension does, or as the test configured.
func (s *stub) reply(ctx context.Context, h *catalog.Hook, in proto.Message) (proto.Message, error) {
	if h.Group == hook.InfrastructureGroup {
		return s.backend.reply(h, in), nil
	}
	if h.Singleton() {
		s.mu.Lock()
		s.discoveries++
		n := s.discoveries
		s.mu.Unlock()
		out := &hooksv1alpha1.DiscoveryResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}
		for _, h := range s.handlers {
			out.Handlers = append(out.Handlers, proto.Clone(h).(*hooksv1alpha1.ExtensionHandler))
		}
		if s.discover != nil {
			s.discover(n, out)
		}
		return out, nil
	}
	if s.before != nil {
		if out, err := s.before(ctx, h, in); out != nil || err != nil {
			return out, err
		}
	}
	out, err := goodAnswer(h, in)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if s.answer != nil {
		s.answer(h, in, out)
	}
	return out, nil
}

// result returns an answer with only a status and a message.
func result(h *catalog.Hook, st hooksv1alpha1.ResponseStatus, message string) proto.Message {
	out := h.Response.New()
	fields := out.Descriptor().Fields()
	out.Set(fields.ByName("status"), protoreflect.ValueOfEnum(protoreflect.EnumNumber(st)))
	out.Set(fields.ByName("message"), protoreflect.ValueOfString(message))
	return out.Interface()
}

func refusal(h *catalog.Hook, format string, args ...any) proto.Message {
	return result(h, hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, fmt.Sprintf(format, args...))
}

// goodAnswer does something real for each hook that has a result.
func goodAnswer(h *catalog.Hook, in proto.Message) (proto.Message, error) {
	out := result(h, hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, "")
	switch in := in.(type) {
	case *hooksv1alpha1.GeneratePatchesRequest:
		out := out.(*hooksv1alpha1.GeneratePatchesResponse)
		for _, item := range in.GetItems() {
			kind, _, err := readObject(item.GetObject())
			if err != nil {
				return nil, err
			}
			p := &hooksv1alpha1.GeneratePatchesResponseItem{Uid: item.GetUid()}
			switch kind {
			case "KubeadmControlPlaneTemplate":
				p.PatchType = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH
				p.Patch = []byte(`[{"op":"add","path":"/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/imageRepository","value":"registry.example.com"}]`)
			case "DockerMachineTemplate":
				p.PatchType = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH
				p.Patch = []byte(`{"spec":{"template":{"spec":{"customImage":"node"}}},"metadata":{"labels":{"a":"b"}}}`)
			default:
				continue
			}
			out.Items = append(out.Items, p)
		}
	case *hooksv1alpha1.DiscoverVariablesRequest:
		out := out.(*hooksv1alpha1.DiscoverVariablesResponse)
		out.Variables = []*hooksv1alpha1.ClusterClassVariable{variable("imageRepository", `{"type":"string","minLength":1,"example":"registry.example.com","x-kubernetes-preserve-unknown-fields":false}`),
			variable("replicas", `{"type":"object","properties":{"count":{"type":"integer","minimum":1,"default":3,"enum":[1,3,5]}}}`)}
	case *hooksv1alpha1.CanUpdateMachineRequest:
		_, current, err := readObject(in.GetCurrent().GetMachine())
		_, desired, err2 := readObject(in.GetDesired().GetMachine())
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		if current != desired {
			out.(*hooksv1alpha1.CanUpdateMachineResponse).MachinePatch = mergePatch(`{"spec":{"version":"` + desired + `"}}`)
		}
	case *hooksv1alpha1.CanUpdateMachineSetRequest:
		out.(*hooksv1alpha1.CanUpdateMachineSetResponse).InfrastructureMachineTemplatePatch = &hooksv1alpha1.Patch{
			PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH, Patch: []byte(`[{"op":"replace","path":"/spec/template/spec/instanceType","value":"m6i.xlarge"}]`),
		}
	case *hooksv1alpha1.UpdateMachineRequest:
		out.(*hooksv1alpha1.UpdateMachineResponse).RetryAfterSeconds = 10
	case *hooksv1alpha1.GenerateUpgradePlanRequest:
		out := out.(*hooksv1alpha1.GenerateUpgradePlanResponse)
		if !strings.HasPrefix(in.GetToKubernetesVersion(), "v1.33.") {
			return nil, fmt.Errorf("toKubernetesVersion %q is not known", in.GetToKubernetesVersion())
		}
		out.ControlPlaneUpgrades = steps("v1.31.0", "v1.32.0", in.GetToKubernetesVersion())
		out.WorkersUpgrades = steps("v1.32.0", in.GetToKubernetesVersion())
	}
	return out, nil
}

func steps(versions ...string) []*hooksv1alpha1.UpgradeStep {
	var list []*hooksv1alpha1.UpgradeStep
	for _, v := range versions {
		list = append(list, &hooksv1alpha1.UpgradeStep{Version: v})
	}
	return list
}

func variable(name, schema string) *hooksv1alpha1.ClusterClassVariable {
	return &hooksv1alpha1.ClusterClassVariable{Name: name, Required: new(false),
		Schema: &hooksv1alpha1.VariableSchema{OpenApiV3Schema: &hooksv1alpha1.JSON{Raw: []byte(schema)}}}
}

func mergePatch(text string) *hooksv1alpha1.Patch {
	return &hooksv1alpha1.Patch{PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH, Patch: []byte(text)}
}

// readObject returns the kind and the version in the spec of an object.
func readObject(o *hooksv1alpha1.RawExtension) (kind, version string, err error) {
	var object struct {
		Kind string
		Spec struct{ Version string }
	}
	err = json.Unmarshal(o.GetRaw(), &object)
	return object.Kind, object.Spec.Version, err
}

// start serves the stub, and returns it as a target.
func (s *stub) start(t testing.TB, p Protocol) Target {
	t.Helper()
	authority, err := devcert.NewAuthority(time.Now().Add(90 * 24 * time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(s.notAfter)
	if err != nil {
		t.Fatal(err)
	}
	config := certificates.Server(t, pair)
	if s.tls != nil {
		s.tls(config)
	}
	target := Target{CA: authority.PEM, now: s.clock.now, shortest: s.shortest}
	if s.named != "" {
		config.Certificates = []tls.Certificate{selfSigned(t, s.named)}
		target.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: config.Certificates[0].Certificate[0]})
	}
	if s.plain {
		target.CA, config = nil, nil
	}
	if p == REST {
		target.URL = s.startREST(t, config)
	} else {
		target.URL = s.startGRPC(t, config)
	}
	return target
}

func selfSigned(t testing.TB, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(60 * 24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (s *stub) startREST(t testing.TB, config *tls.Config) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.serve != nil {
			s.serve(w, r, s.serveREST)
			return
		}
		s.serveREST(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	if config == nil {
		server.Start()
	} else {
		server.TLS = config
		server.EnableHTTP2 = s.http2
		server.StartTLS()
	}
	return server.URL
}

func (s *stub) serveREST(w http.ResponseWriter, r *http.Request) {
	h, rest, ok := hooks.ByPath(r.URL.Path)
	handler := strings.TrimPrefix(rest, "/")
	if !ok || h.Singleton() != (handler == "") || handler != "" && !s.announces(handler) ||
		h.Group == hook.InfrastructureGroup && s.backend == nil {
		http.NotFound(w, r)
		return
	}
	in := h.Request.New().Interface()
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.limit)))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	if err := mandated.Decode(data, in); err != nil && !s.readsAll {
		s.write(w, h, refusal(h, "read request: %s", err))
		return
	}
	out, err := s.reply(r.Context(), h, in)
	switch status.Code(err) {
	case codes.OK:
		s.write(w, h, out)
	case codes.InvalidArgument:
		http.Error(w, status.Convert(err).Message(), http.StatusBadRequest)
	default:
		http.Error(w, status.Convert(err).Message(), http.StatusInternalServerError)
	}
}

func (s *stub) announces(name string) bool {
	for _, h := range s.handlers {
		if strings.EqualFold(h.GetName(), name) {
			return true
		}
	}
	return s.backend != nil && s.backend.announces(name)
}

func (s *stub) write(w http.ResponseWriter, h *catalog.Hook, out proto.Message) {
	body, err := mandated.Append(nil, out)
	if err != nil { // what a test wants to be wrong
		body = render(out)
	}
	if s.body != nil {
		body = s.body(h, body)
	}
	_, _ = w.Write(body)
}

func (s *stub) startGRPC(t testing.TB, config *tls.Config) string {
	t.Helper()
	options := []grpc.ServerOption{grpc.MaxRecvMsgSize(s.limit), grpc.MaxSendMsgSize(s.limit)}
	if config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	if s.unknown != nil {
		options = append(options, grpc.UnknownServiceHandler(s.unknown))
	}
	if s.readsAll {
		options = append(options, grpc.ForceServerCodec(lenient{}))
	}
	server := grpc.NewServer(options...)
	services := map[string]*grpc.ServiceDesc{}
	for _, h := range hooks.Hooks() {
		name := serviceOf(h)
		if s.noSuch[name] || h.Group == hook.InfrastructureGroup && s.backend == nil {
			continue
		}
		if services[name] == nil {
			services[name] = &grpc.ServiceDesc{ServiceName: name, HandlerType: (*any)(nil)}
		}
		_, method, _ := strings.Cut(strings.TrimPrefix(h.Method, "/"), "/")
		services[name].Methods = append(services[name].Methods, grpc.MethodDesc{MethodName: method,
			Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				in := h.Request.New().Interface()
				if err := decode(in); err != nil {
					return nil, err
				}
				return s.reply(ctx, h, in)
			}})
	}
	for _, d := range services {
		server.RegisterService(d, s)
	}
	if !s.noHealth {
		hs := health.NewServer()
		if s.notReady {
			hs.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
		}
		healthv1.RegisterHealthServer(server, hs)
	}
	if s.reflect != nil {
		s.reflect(server)
	} else {
		reflection.Register(server)
	}
	network, address, scheme := "tcp", "127.0.0.1:0", "grpcs://"
	if s.plain {
		scheme = "grpc://"
	}
	if s.unix {
		network, address = "unix", filepath.Join(t.TempDir(), "ext.sock")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }() // until it is stopped
	t.Cleanup(server.Stop)
	if s.unix {
		return "unix://" + address
	}
	return scheme + l.Addr().String()
}

// lenient is a codec that reads anything.
type lenient struct{}

func (lenient) Marshal(v any) ([]byte, error) { return proto.Marshal(v.(proto.Message)) }
func (lenient) Unmarshal(data []byte, v any) error {
	_ = proto.Unmarshal(data, v.(proto.Message)) // whatever it is
	return nil
}
func (lenient) Name() string { return "proto" }
