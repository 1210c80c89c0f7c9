// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// apiServer is an API server in memory, as far as a Source uses one: get, watch, create, update, merge patches and delete, with
// resource versions, generations, conflicts and the status subresource. Every kind exists.
type apiServer struct {
	*httptest.Server
	mu        sync.Mutex
	objects   map[string]map[string]any // by path
	history   []change                  // the resource version after a change is its place in here, from 1
	changed   chan struct{}             // closed and replaced with every change
	writes    []write
	intercept func(method, path string) error // if not nil, called for each request before it is served, without the lock
	onWatch   func(path string)               // like intercept, for each watch
	refuse    func(path string) error         // like onWatch; its error is the answer
}

// change is an event of a watch.
type change struct {
	kind, path string
	object     []byte
}

// write is a mutating request, except for Leases.
type write struct {
	request string // such as "PATCH acme/status"
	body    string
	code    int
}

func newAPIServer(t testing.TB) *apiServer {
	t.Helper()
	s := &apiServer{objects: map[string]map[string]any{}, changed: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *apiServer) config() *rest.Config {
	return &rest.Config{Host: s.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		s.mu.Lock()
		onWatch, refuse := s.onWatch, s.refuse
		s.mu.Unlock()
		if onWatch != nil {
			onWatch(r.URL.Path)
		}
		if refuse != nil {
			if err := refuse(r.URL.Path); err != nil {
				status := statusOf(err)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(int(status.Code))
				_ = json.NewEncoder(w).Encode(status) // the client may have left
				return
			}
		}
		s.watch(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has left
	}
	path, subresource := strings.CutSuffix(r.URL.Path, "/status")
	s.mu.Lock()
	intercept := s.intercept
	s.mu.Unlock()
	var object map[string]any
	if intercept != nil {
		err = intercept(r.Method, r.URL.Path)
	}
	s.mu.Lock()
	if err == nil {
		object, err = s.serve(r.Method, path, subresource, body)
	}
	code, answer := http.StatusOK, any(object)
	if err != nil {
		status := statusOf(err)
		code, answer = int(status.Code), status
	}
	if r.Method != http.MethodGet && !strings.Contains(path, "/leases") {
		name := path[strings.LastIndex(path, "/")+1:]
		if subresource {
			name += "/status"
		}
		s.writes = append(s.writes, write{request: r.Method + " " + name, body: string(body), code: code})
	}
	text, err := json.Marshal(answer)
	s.mu.Unlock()
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text) // the client may have left
}

// statusOf returns an error as an API server answers it.
func statusOf(err error) metav1.Status {
	status := apierrors.NewInternalError(err).ErrStatus
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return status
}

// serve handles a request. The caller holds the lock.
func (s *apiServer) serve(method, path string, subresource bool, body []byte) (map[string]any, error) {
	name := path[strings.LastIndex(path, "/")+1:]
	resource := schema.GroupResource{Resource: path[:strings.LastIndex(path, "/")]}
	before := s.objects[path]
	sent := map[string]any{}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &sent); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	switch {
	case method == http.MethodPost:
		path += "/" + metadata(sent)["name"].(string)
		if s.objects[path] != nil {
			return nil, apierrors.NewAlreadyExists(resource, path)
		}
		if metadata(sent)["uid"] == nil {
			metadata(sent)["uid"] = fmt.Sprintf("uid-%d", len(s.history))
		}
		return s.store(path, sent), nil
	case before == nil:
		return nil, apierrors.NewNotFound(resource, name)
	case method == http.MethodDelete:
		if only, ok := sent["preconditions"].(map[string]any); ok && only["uid"] != metadata(before)["uid"] {
			return nil, apierrors.NewConflict(resource, name, errors.New("the UID in the precondition differs"))
		}
		return before, s.delete(path)
	case method == http.MethodGet:
		return before, nil
	}
	if version, ok := metadata(sent)["resourceVersion"]; ok && version != metadata(before)["resourceVersion"] {
		return nil, apierrors.NewConflict(resource, name, errors.New("the object has been modified"))
	}
	after := sent
	if method == http.MethodPatch {
		text, err := json.Marshal(before)
		if err != nil {
			return nil, err
		}
		if text, err = jsonpatch.MergePatch(text, body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		after = map[string]any{}
		if err := json.Unmarshal(text, &after); err != nil {
			return nil, err
		}
	}
	if subresource {
		status := after["status"]
		after = copied(before)
		after["status"] = status
	} else if after["status"] = before["status"]; after["status"] == nil {
		delete(after, "status")
	}
	return s.store(path, after), nil
}

// store replaces an object, unless nothing changes, and returns the result. The caller holds the lock.
func (s *apiServer) store(path string, object map[string]any) map[string]any {
	before := s.objects[path]
	m, generation, kind := metadata(object), 1.0, "ADDED"
	if before != nil {
		kind, generation = "MODIFIED", metadata(before)["generation"].(float64)
		if !reflect.DeepEqual(before["spec"], object["spec"]) ||
			!reflect.DeepEqual(before["endpoints"], object["endpoints"]) {
			generation++
		}
		m["resourceVersion"] = metadata(before)["resourceVersion"]
	}
	m["generation"] = generation
	if reflect.DeepEqual(before, object) {
		return object
	}
	m["resourceVersion"] = strconv.Itoa(len(s.history) + 1)
	s.objects[path] = object
	s.note(kind, path, object)
	return object
}

// note adds to the history. The caller holds the lock.
func (s *apiServer) note(kind, path string, object map[string]any) {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	s.history = append(s.history, change{kind: kind, path: path, object: text})
	close(s.changed)
	s.changed = make(chan struct{})
}

// put creates or replaces an object as a user does, who brings no resource version.
func (s *apiServer) put(path string, object any) {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	decoded := map[string]any{}
	if err := json.Unmarshal(text, &decoded); err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(path, decoded)
}

func (s *apiServer) remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.delete(path) // it cannot fail
}

// delete is remove for a caller that holds the lock.
func (s *apiServer) delete(path string) error {
	object := copied(s.objects[path])
	metadata(object)["resourceVersion"] = strconv.Itoa(len(s.history) + 1)
	delete(s.objects, path)
	s.note("DELETED", path, object)
	return nil
}

// read decodes an object into the given one, and reports whether there is one.
func (s *apiServer) read(path string, into any) bool {
	s.mu.Lock()
	text, err := json.Marshal(s.objects[path])
	s.mu.Unlock()
	if err := errors.Join(err, json.Unmarshal(text, into)); err != nil {
		panic(err)
	}
	return string(text) != "null"
}

// before calls f with each request before it is served. A result of f other than nil is the answer.
func (s *apiServer) before(f func(method, path string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

// refuseWatches answers watches with the errors of f.
func (s *apiServer) refuseWatches(f func(path string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = f
}

// watching calls f with the path of each watch before it begins.
func (s *apiServer) watching(f func(path string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onWatch = f
}

// written returns the writes of ExtensionConfigs and policies so far. Events are written in the background, and are
// left out.
func (s *apiServer) written() []write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(
		slices.Clone(s.writes),
		func(w write) bool { return strings.HasPrefix(w.request, "POST events") },
	)
}

// events returns the events so far, each as "Warning NotDiscovered: note".
func (s *apiServer) events() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, w := range s.writes {
		var e struct{ Type, Reason, Note string }
		if w.request == "POST events" && json.Unmarshal([]byte(w.body), &e) == nil {
			all = append(all, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Note))
		}
	}
	return all
}

// regarding returns what the events so far are about.
func (s *apiServer) regarding() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, w := range s.writes {
		var e eventsv1.Event
		if w.request == "POST events" && json.Unmarshal([]byte(w.body), &e) == nil && e.Related != nil {
			all = append(all, fmt.Sprintf("%s %s/%s %s %s %s", e.Regarding.Kind, e.Regarding.Namespace, e.Regarding.Name, e.Regarding.UID,
				e.Related.Kind, e.Related.Name))
		}
	}
	return all
}

// watch sends the existing objects, if the client wants them, and then changes.
func (s *apiServer) watch(w http.ResponseWriter, r *http.Request) {
	send := func(kind string, object []byte) {
		if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			var o metav1.PartialObjectMetadata
			if err := json.Unmarshal(object, &o); err != nil {
				panic(err)
			}
			o.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
			object, _ = json.Marshal(o) // what was read can be written
		}
		_, _ = fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", kind, object) // the client may have left
	}
	collection := regexp.MustCompile(
		"^" + strings.ReplaceAll(
			allNamespaces.ReplaceAllString(r.URL.Path, "$1(/namespaces/[^/]+)?/$2"), ".", "[.]",
		) + "/[^/]+$",
	)
	w.Header().Set("Content-Type", "application/json")
	next, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		s.mu.Lock()
		next = len(s.history)
		var initial [][]byte
		for path, object := range s.objects {
			if collection.MatchString(path) {
				text, _ := json.Marshal(object) // what was read can be written
				initial = append(initial, text)
			}
		}
		s.mu.Unlock()
		for _, object := range initial {
			send("ADDED", object)
		}
		group, kind := kindOf(r.URL.Path)
		send(
			"BOOKMARK",
			fmt.Appendf(
				nil,
				`{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}`,
				group,
				kind,
				next,
			),
		)
	}
	for {
		s.mu.Lock()
		changes, changed := s.history[next:], s.changed
		s.mu.Unlock()
		next += len(changes)
		for _, c := range changes {
			if collection.MatchString(c.path) {
				send(c.kind, c.object)
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// allNamespaces matches a collection that is not of one namespace.
var allNamespaces = regexp.MustCompile(`^(/api/v1|/apis/[^/]+/[^/]+)/([^/]+)$`)

// kindOf returns the apiVersion and kind of the objects in a collection.
func kindOf(path string) (apiVersion, kind string) {
	kinds := map[string]string{
		"extensionconfigs":          "ExtensionConfig",
		"extensionpolicies":         "ExtensionPolicy",
		"handlerchains":             "HandlerChain",
		"hookrules":                 "HookRule",
		"hookjobs":                  "HookJob",
		"jobs":                      "Job",
		"controllerrevisions":       "ControllerRevision",
		"extensionrollouts":         "ExtensionRollout",
		"extensionrolloutrecords":   "ExtensionRolloutRecord",
		"clusters":                  "Cluster",
		"namespaces":                "Namespace",
		"secrets":                   "Secret",
		"endpointslices":            "EndpointSlice",
		"customresourcedefinitions": "CustomResourceDefinition",
	}
	steps := strings.Split(strings.Trim(path, "/"), "/")
	if steps[0] == "api" {
		return steps[1], kinds[steps[len(steps)-1]]
	}
	return steps[1] + "/" + steps[2], kinds[steps[len(steps)-1]]
}

func metadata(object map[string]any) map[string]any {
	m, ok := object["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		object["metadata"] = m
	}
	return m
}

// copied returns a copy of an object whose members, and its metadata's, can be replaced.
func copied(object map[string]any) map[string]any {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	other := map[string]any{}
	if err := json.Unmarshal(text, &other); err != nil {
		panic(err)
	}
	return other
}
