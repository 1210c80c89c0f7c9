// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// The account that the AWS of the tests knows.
const (
	awsRegion  = "eu-central-1"
	awsKey     = "AKIAHOOKGATEEXAMPLE"
	awsSecret  = "secret-key-of-the-account"
	awsSession = "session-token-of-the-account"
)

// awsProxy stands in front of moto. It does what AWS does and moto does not: it knows access keys, gives the same answer
// to the same ClientToken, and deletes versions of launch templates. Groups of moto fail on the user data of any version
// but the first, so others have none. And the proxy does what a test wants to go wrong.
type awsProxy struct {
	moto string

	mu     sync.Mutex
	calls  map[string]int       // by action
	tokens map[string][2]string // the request and its answer, by ClientToken
	refuse map[string]string    // codes of errors, by action
	canned map[string]string    // answers, by action
	blind  bool                 // no instance has a tag yet
	hang   string               // the action that is carried out and not answered
	done   chan struct{}        // closed after that
}

// ServeHTTP implements http.Handler.
func (a *awsProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	form, err2 := url.ParseQuery(string(body))
	if err != nil || err2 != nil {
		http.Error(w, "no form", http.StatusBadRequest)
		return
	}
	status, answer, hangs := a.answer(r, form)
	if hangs {
		<-r.Context().Done()
		return
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer) // the caller may be gone
}

func (a *awsProxy) answer(r *http.Request, form url.Values) (status int, answer string, hangs bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	action, token := form.Get("Action"), form.Get("ClientToken")
	a.calls[action]++
	code := a.refuse[action]
	if !strings.Contains(r.Header.Get("Authorization"), "Credential="+awsKey+"/") {
		code = "AuthFailure"
	}
	asked := form.Encode()
	known, repeated := a.tokens[token]
	switch {
	case code == "" && repeated && known[0] != asked:
		code = "IdempotentParameterMismatch"
	case code == "" && repeated:
		return http.StatusOK, known[1], false
	case code == "" && a.canned[action] != "":
		return http.StatusOK, a.canned[action], false
	case a.blind && action == "DescribeInstances":
		form.Set("Filter.1.Value.1", "nothing")
	case action == "CreateLaunchTemplateVersion":
		form.Del("LaunchTemplateData.UserData")
	}
	if code != "" {
		return http.StatusBadRequest, "<Response><Errors><Error><Code>" + code + "</Code><Message>of " +
			r.Header.Get("X-Amz-Security-Token") + "</Message></Error></Errors></Response>", false
	}
	status, answer = a.forward(r.Context(), r.Header, form)
	if token != "" && status == http.StatusOK {
		a.tokens[token] = [2]string{asked, answer}
	}
	if hangs = a.hang == action; hangs {
		a.hang = ""
		close(a.done)
	}
	return status, answer, hangs
}

func (a *awsProxy) forward(ctx context.Context, header http.Header, form url.Values) (int, string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.moto, strings.NewReader(form.Encode()))
	if err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", header.Get("Authorization")) // names the service
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return http.StatusBadGateway, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return http.StatusBadGateway, err.Error()
	}
	return response.StatusCode, string(answer)
}

// ec2 is moto, the proxy, and the example in front of them.
type ec2 struct {
	*testing.T

	proxy    *awsProxy
	provider *process.Process
	start    func() *process.Process
	address  string
	ca       string
	outputs  *hooksv1alpha1.JSON // of the cluster

	clusters infrastructurev1alpha1.ClusterHooksServiceClient
	machines infrastructurev1alpha1.MachineHooksServiceClient
	pools    infrastructurev1alpha1.MachinePoolHooksServiceClient
}

func newEC2(t *testing.T, environment ...string) *ec2 {
	t.Helper()
	port := process.FreePort(t)
	moto := process.Run(t, "moto", exec.Command(process.Program(t, "HOOKGATE_MOTO"), "-H", "127.0.0.1", "-p", strconv.Itoa(port)))
	moto.Expect(t, "Running on")
	w := &ec2{T: t, address: freeAddress(t), proxy: &awsProxy{
		moto: fmt.Sprintf("http://127.0.0.1:%d", port), calls: map[string]int{}, tokens: map[string][2]string{},
		canned: map[string]string{"DeleteLaunchTemplateVersions": "<DeleteLaunchTemplateVersionsResponse/>"},
	}}
	server := httptest.NewServer(w.proxy)
	t.Cleanup(func() {
		server.CloseClientConnections() // requests that hang end with their connection
		server.Close()
	})
	certs := t.TempDir()
	pair := certificates.In(t, certs)
	w.ca = filepath.Join(certs, devcert.CAFile)
	w.start = func() *process.Process {
		cmd := exec.Command(filepath.Join(folder, "ec2", "run"), w.address, certs)
		cmd.Env = append(append(os.Environ(), "AWS_ENDPOINT_URL="+server.URL, "AWS_CONFIG_FILE=/dev/null"), environment...)
		p := process.Run(t, "extension", cmd)
		p.Expect(t, `listening on `)
		return p
	}
	w.provider = w.start()
	conn, err := grpc.NewClient(w.address, grpc.WithTransportCredentials(credentials.NewTLS(pair.ClientTLS())),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	w.clusters = infrastructurev1alpha1.NewClusterHooksServiceClient(conn)
	w.machines = infrastructurev1alpha1.NewMachineHooksServiceClient(conn)
	w.pools = infrastructurev1alpha1.NewMachinePoolHooksServiceClient(conn)
	return w
}

// soon returns a context that ends with the test, or once any call should be over.
func (w *ec2) soon() context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), process.Patience)
	w.Cleanup(cancel)
	return ctx
}

// set changes what goes wrong.
func (w *ec2) set(change func(a *awsProxy)) {
	w.proxy.mu.Lock()
	defer w.proxy.mu.Unlock()
	change(w.proxy)
}

// counted returns how often an action has been asked for.
func (w *ec2) counted(action string) int {
	w.proxy.mu.Lock()
	defer w.proxy.mu.Unlock()
	return w.proxy.calls[action]
}

// ask returns the answer of moto itself to an action, with arguments in pairs.
func (w *ec2) ask(service, apiVersion, action string, arguments ...string) string {
	w.Helper()
	form := url.Values{"Action": {action}, "Version": {apiVersion}}
	for i := 0; i < len(arguments); i += 2 {
		form.Set(arguments[i], arguments[i+1])
	}
	header := http.Header{"Authorization": {"AWS4-HMAC-SHA256 Credential=" + awsKey + "/20260101/" + awsRegion + "/" + service +
		"/aws4_request, SignedHeaders=host, Signature=0"}}
	status, answer := w.proxy.forward(w.soon(), header, form)
	if status != http.StatusOK {
		w.Fatalf("%s: %d %s", action, status, answer)
	}
	return answer
}

// askEC2 is ask for EC2, about what has the tag.
func (w *ec2) askEC2(action string, arguments ...string) string {
	w.Helper()
	return w.ask("ec2", "2016-11-15", action, append([]string{
		"Filter.1.Name", "tag-key", "Filter.1.Value.1", "hookgate.dev/external-id",
	}, arguments...)...)
}

// instanceState finds the states of instances in an answer of EC2.
var instanceState = regexp.MustCompile(`<instanceState>\s*<code>\d+</code>\s*<name>([a-z-]+)</name>`)

// checkInstances fails the test unless EC2 has so many instances that run, and has made so many.
func (w *ec2) checkInstances(run, made int) {
	w.Helper()
	var states []string
	for _, match := range instanceState.FindAllStringSubmatch(w.askEC2("DescribeInstances"), -1) {
		states = append(states, match[1])
	}
	running := len(slices.DeleteFunc(slices.Clone(states), func(s string) bool { return s != "running" }))
	if running != run || len(states) != made {
		w.Fatalf("the instances are %v, want %d of which %d run", states, made, run)
	}
}

// checkNetwork fails the test unless there is so much of everything that a cluster is made of, but three subnets of each.
func (w *ec2) checkNetwork(want int) {
	w.Helper()
	elb := func(action string) string { return w.ask("elasticloadbalancing", "2015-12-01", action) }
	got := []int{
		strings.Count(w.askEC2("DescribeVpcs"), "<vpcId>"),
		strings.Count(w.askEC2("DescribeInternetGateways"), "<internetGatewayId>"),
		strings.Count(w.askEC2("DescribeSubnets"), "<subnetId>") / 3,
		strings.Count(elb("DescribeLoadBalancers"), "<LoadBalancerArn>"),
		strings.Count(elb("DescribeTargetGroups"), "<TargetGroupArn>"),
	}
	if !slices.Equal(got, []int{want, want, want, want, want}) {
		w.Errorf("VPCs, gateways, subnets of three, load balancers and target groups: %v, want %d of each", got, want)
	}
}

// killAfter kills the example after AWS has carried out an action of the call, and before it has answered, and starts
// it again.
func (w *ec2) killAfter(action string, call func() error) {
	w.Helper()
	done, ended := make(chan struct{}), make(chan error, 1)
	w.set(func(a *awsProxy) { a.hang, a.done = action, done })
	go func() { ended <- call() }()
	select {
	case <-done:
	case err := <-ended:
		w.Fatalf("the call has ended without %s: %v", action, err)
	}
	w.provider.Kill()
	if err := <-ended; err == nil {
		w.Errorf("the call that %s was of succeeded without the extension", action)
	}
	w.provider = w.start()
}

// subject returns what a hook is about.
func (w *ec2) subject(id string) *infrastructurev1alpha1.Subject {
	return &infrastructurev1alpha1.Subject{
		ExternalId: id, ClusterExternalId: "net", Namespace: "default", Name: strings.TrimSuffix(id, "-id"), ClusterName: "one",
		Credentials: map[string]string{
			"region": awsRegion + "\n", "aws_access_key_id": awsKey + "\n", "aws_secret_access_key": awsSecret + "\n",
			"aws_session_token": awsSession + "\n",
		},
		Parameters:     &hooksv1alpha1.JSON{Raw: []byte(`{"imageId": "ami-0123456789abcdef0"}`)},
		ClusterOutputs: w.outputs,
	}
}

// machine returns a request for a control plane machine.
func (w *ec2) machine(id, data string) *infrastructurev1alpha1.ReconcileMachineRequest {
	return &infrastructurev1alpha1.ReconcileMachineRequest{
		Subject: w.subject(id), ControlPlane: true, Version: version, FailureDomain: awsRegion + "b",
		Bootstrap: &infrastructurev1alpha1.Bootstrap{Data: []byte(data), Format: "cloud-config"},
	}
}

// pool returns a request for the pool of all tests.
func (w *ec2) pool(replicas int32, revision string, remove ...string) *infrastructurev1alpha1.ReconcileMachinePoolRequest {
	return &infrastructurev1alpha1.ReconcileMachinePoolRequest{
		Subject: w.subject("pool-id"), Replicas: &replicas, Remove: remove, Revision: revision, Version: version,
		Bootstrap: &infrastructurev1alpha1.Bootstrap{Data: []byte("#cloud-config of " + revision), Format: "cloud-config"},
	}
}

// TestEC2 tests the example in steps, each of which goes on from the one before.
func TestEC2(t *testing.T) {
	w := newEC2(t)
	w.checkCluster()
	id := w.checkKilled()
	w.checkRefusals(id)
	w.checkPool()
	w.checkVanished(id)
	w.checkEnd()
}

// until asks again until the answer says ready, and fails the test unless all answers are successes.
func until[R interface {
	GetStatus() hooksv1alpha1.ResponseStatus
}](w *ec2, what string, ask func() (R, error), ready func(R) bool) R {
	w.Helper()
	var answer R
	process.Eventually(w, what, func() bool {
		var err error
		if answer, err = ask(); err != nil || answer.GetStatus() != success {
			w.Fatalf("%s: %v, %v", what, answer, err)
		}
		return ready(answer)
	})
	return answer
}

func (w *ec2) askCluster(id string) (*infrastructurev1alpha1.ReconcileClusterResponse, error) {
	return w.clusters.ReconcileCluster(w.soon(), &infrastructurev1alpha1.ReconcileClusterRequest{Subject: w.subject(id)})
}

func (w *ec2) deleteCluster(id string) (*infrastructurev1alpha1.DeleteClusterResponse, error) {
	return w.clusters.DeleteCluster(w.soon(), &infrastructurev1alpha1.DeleteClusterRequest{Subject: w.subject(id)})
}

func (w *ec2) deleteMachine(id string) (*infrastructurev1alpha1.DeleteMachineResponse, error) {
	return w.machines.DeleteMachine(w.soon(), &infrastructurev1alpha1.DeleteMachineRequest{Subject: w.subject(id)})
}

func (w *ec2) deletePool() (*infrastructurev1alpha1.DeleteMachinePoolResponse, error) {
	return w.pools.DeleteMachinePool(w.soon(), &infrastructurev1alpha1.DeleteMachinePoolRequest{Subject: w.subject("pool-id")})
}

// asked calls the hook for a machine and fails the test on an error.
func (w *ec2) asked(request *infrastructurev1alpha1.ReconcileMachineRequest) *infrastructurev1alpha1.ReconcileMachineResponse {
	w.Helper()
	answer, err := w.machines.ReconcileMachine(w.soon(), request)
	if err != nil {
		w.Fatal(err)
	}
	return answer
}

// checkCluster: a cluster gets ready, whatever AWS has made when the example is killed, and then stays the same.
func (w *ec2) checkCluster() {
	w.Helper()
	other := w.ask("ec2", "2016-11-15", "CreateVpc", "CidrBlock", "10.0.0.0/16")
	for _, action := range []string{
		"CreateVpc", "CreateTargetGroup", "CreateInternetGateway", "CreateSubnet", "CreateLoadBalancer", "CreateListener",
	} {
		w.killAfter(action, func() error { _, err := w.askCluster("net"); return err })
	}
	get := func() (*infrastructurev1alpha1.ReconcileClusterResponse, error) { return w.askCluster("net") }
	isReady := func(a *infrastructurev1alpha1.ReconcileClusterResponse) bool { return a.GetPhase() == ready }
	answer := until(w, "the cluster is ready", get, isReady)
	if answer.GetControlPlaneEndpoint().GetPort() != 6443 || len(answer.GetFailureDomains()) != 3 {
		w.Errorf("a cluster that is ready: %v", answer)
	}
	if second := until(w, "the cluster is ready", get, isReady); !proto.Equal(answer, second) {
		w.Errorf("the second answer is %v, the first was %v", second, answer)
	}
	w.outputs = answer.GetOutputs()
	w.checkNetwork(1)
	w.checkReachable()
	w.checkAtOnce()
	// Another process has made a VPC, too, which EC2 lists first.
	w.ask("ec2", "2016-11-15", "CreateTags", "ResourceId.1", between(other, "<vpcId>", "</vpcId>"),
		"Tag.1.Key", "hookgate.dev/external-id", "Tag.1.Value", "net")
	if second := until(w, "the cluster is ready", get, isReady); !proto.Equal(answer, second) {
		w.Errorf("the answer with two VPCs is %v, it was %v", second, answer)
	}
}

// checkReachable: machines reach the Internet, and the load balancer reaches them.
func (w *ec2) checkReachable() {
	w.Helper()
	for action, part := range map[string]string{
		"DescribeInternetGateways": "<vpcId>", "DescribeRouteTables": "<gatewayId>igw-", "DescribeSecurityGroups": "<fromPort>6443<",
	} {
		if text := w.ask("ec2", "2016-11-15", action); !strings.Contains(text, part) {
			w.Errorf("machines do not reach the Internet, or the API server: %s has no %s: %s", action, part, text)
		}
	}
	if subnets := w.askEC2("DescribeSubnets"); strings.Count(subnets, "<mapPublicIpOnLaunch>true<") != 3 {
		w.Errorf("machines have no public addresses: %s", subnets)
	}
}

// checkAtOnce: a cluster that is asked for several times at once is made once.
func (w *ec2) checkAtOnce() {
	w.Helper()
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			if answer, err := w.askCluster("other"); err != nil || answer.GetStatus() != success {
				w.Errorf("a cluster that is asked for several times at once: %v, %v", answer, err)
			}
		})
	}
	calls.Wait()
	w.checkNetwork(2)
	for _, want := range []infrastructurev1alpha1.DeletionState{deleting, gone} {
		if answer, err := w.deleteCluster("other"); err != nil || answer.GetState() != want {
			w.Errorf("a cluster that is deleted: %v, %v, want %v", answer, err, want)
		}
	}
	w.checkNetwork(1)
}

// checkKilled: an example that is killed after EC2 has made an instance finds it again, also while EC2 does not show it.
// It returns the provider ID.
func (w *ec2) checkKilled() string {
	w.Helper()
	const data = "#cloud-config of cp-0"
	w.killAfter("RunInstances", func() error {
		_, err := w.machines.ReconcileMachine(w.soon(), w.machine("cp-0-id", data))
		return err
	})
	w.set(func(a *awsProxy) { a.blind = true })
	blind := w.asked(w.machine("cp-0-id", data))
	if other := w.asked(w.machine("cp-0-id", "with another token")); other.GetStatus() != failure {
		w.Errorf("other bootstrap data for a machine that EC2 does not show: %v", other)
	}
	w.set(func(a *awsProxy) { a.blind = false })
	answer := w.asked(w.machine("cp-0-id", "with another token"))
	if answer.GetPhase() != ready || answer.GetProviderId() != blind.GetProviderId() || answer.GetFailureDomain() != awsRegion+"b" ||
		!strings.HasPrefix(answer.GetProviderId(), "aws:///"+awsRegion+"b/i-") || len(answer.GetAddresses()) == 0 {
		w.Errorf("a machine that is ready: %v, and before: %v", answer, blind)
	}
	look := w.machine("cp-0-id", "")
	look.Bootstrap, look.ProviderId = nil, answer.GetProviderId()
	if second := w.asked(look); !proto.Equal(second, answer) {
		w.Errorf("a machine that was recorded: %v, and before: %v", second, answer)
	}
	w.checkInstances(1, 1)

	_, instance, _ := strings.Cut(answer.GetProviderId(), awsRegion+"b/")
	text := w.ask("ec2", "2016-11-15", "DescribeInstanceAttribute", "InstanceId", instance, "Attribute", "userData")
	if got := unpacked(w.T, between(text, "<value>", "</value>")); got != data {
		w.Errorf("the instance starts with %q", got)
	}
	groups := w.ask("elasticloadbalancing", "2015-12-01", "DescribeTargetGroups")
	targets := w.ask("elasticloadbalancing", "2015-12-01", "DescribeTargetHealth", "TargetGroupArn",
		between(groups, "<TargetGroupArn>", "</TargetGroupArn>"))
	if !strings.Contains(targets, instance) {
		w.Errorf("the machine is no target of the load balancer: %s", targets)
	}
	return answer.GetProviderId()
}

// between returns what is between two texts.
func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return strings.TrimSpace(text)
}

// unpacked returns user data as cloud-init reads it.
func unpacked(t *testing.T, text string) string {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// checkRefusals: what AWS refuses to make is Failed with a reason, everything else that goes wrong is a Failure, and no
// text has the credentials.
func (w *ec2) checkRefusals(id string) {
	w.Helper()
	var texts []string
	for code, reason := range map[string]string{
		"InsufficientInstanceCapacity": "InsufficientCapacity",
		"InstanceLimitExceeded":        "QuotaExceeded",
		"VcpuLimitExceeded":            "QuotaExceeded",
		"InvalidAMIID.NotFound":        "InvalidParameters",
		"SignatureDoesNotMatch":        "CredentialsInvalid",
		"UnauthorizedOperation":        "CredentialsInvalid",
		"RequestLimitExceeded":         "",
		"InternalError":                "",
	} {
		w.set(func(a *awsProxy) { a.refuse = map[string]string{"RunInstances": code} })
		answer := w.asked(w.machine("cp-1-id", "#cloud-config"))
		if reason != "" && (answer.GetPhase() != failed || answer.GetReason() != reason) ||
			reason == "" && answer.GetStatus() != failure || !strings.Contains(answer.GetMessage(), code) {
			w.Errorf("%s: %v, want the reason %q", code, answer, reason)
		}
		if want := "RunInstances: " + code; reason == "CredentialsInvalid" && answer.GetMessage() != want {
			w.Errorf("%s: the message is %q, want %q", code, answer.GetMessage(), want)
		}
		texts = append(texts, answer.GetMessage())
	}
	w.set(func(a *awsProxy) { a.refuse = nil })
	w.checkInstances(1, 1)

	intruder := w.subject("cp-1-id")
	intruder.Credentials["aws_access_key_id"] = "AKIAINTRUDER"
	request := w.machine("cp-1-id", "#cloud-config")
	request.Subject = intruder
	if answer := w.asked(request); answer.GetPhase() != failed || answer.GetReason() != "CredentialsInvalid" {
		w.Errorf("a machine with wrong credentials: %v", answer)
	}
	request.ProviderId = id
	if answer := w.asked(request); answer.GetStatus() != failure {
		w.Errorf("a machine that was recorded, with wrong credentials: %v", answer)
	}
	deletion, err := w.machines.DeleteMachine(w.soon(), &infrastructurev1alpha1.DeleteMachineRequest{Subject: intruder})
	if err != nil || deletion.GetStatus() != failure {
		w.Errorf("a deletion with wrong credentials: %v, %v", deletion, err)
	}
	delete(intruder.Credentials, "aws_secret_access_key")
	if answer := w.asked(request); answer.GetStatus() != failure {
		w.Errorf("a machine without a secret key: %v", answer)
	}
	for _, text := range append(texts, deletion.String(), w.provider.Output()) {
		if strings.Contains(text, awsSecret) || strings.Contains(text, awsSession) {
			w.Errorf("a text has the credentials: %s", text)
		}
	}
}

// checkPool: a pool grows and shrinks by the instances that are named, also if the example is killed, and new instances
// are of the new revision.
func (w *ec2) checkPool() {
	w.Helper()
	w.killAfter("CreateAutoScalingGroup", func() error {
		_, err := w.pools.ReconcileMachinePool(w.soon(), w.pool(2, "r1"))
		return err
	})
	isReady := func(a *infrastructurev1alpha1.ReconcileMachinePoolResponse) bool { return a.GetPhase() == ready }
	sized := func(replicas int32, revision string, remove ...string) []*infrastructurev1alpha1.Instance {
		w.Helper()
		answer := until(w, "the pool is ready", func() (*infrastructurev1alpha1.ReconcileMachinePoolResponse, error) {
			return w.pools.ReconcileMachinePool(w.soon(), w.pool(replicas, revision, remove...))
		}, isReady)
		if len(answer.GetInstances()) != int(replicas) || answer.GetInstanceCount() != replicas ||
			!strings.HasPrefix(answer.GetProviderId(), "arn:aws:autoscaling:") {
			w.Fatalf("a pool of %d: %v", replicas, answer)
		}
		return answer.GetInstances()
	}
	two := idsOf(sized(2, "r1"))
	four := sized(4, "r1")
	shrunk, err := w.pools.ReconcileMachinePool(w.soon(), w.pool(2, "r1"))
	if err != nil || shrunk.GetPhase() != provisioning || len(shrunk.GetInstances()) != 4 {
		w.Errorf("a pool of four that is to have two, of which none is named: %v, %v", shrunk, err)
	}
	w.checkInstances(5, 5)
	leaving := slices.DeleteFunc(idsOf(four), func(id string) bool { return id == two[0] || id == idsOf(four)[3] })
	w.killAfter("TerminateInstanceInAutoScalingGroup", func() error {
		_, err := w.pools.ReconcileMachinePool(w.soon(), w.pool(2, "r1", leaving...))
		return err
	})
	left := idsOf(sized(2, "r1", leaving...))
	if slices.ContainsFunc(leaving, func(id string) bool { return slices.Contains(left, id) }) {
		w.Errorf("%v were to be removed of %v, and there are %v", leaving, idsOf(four), left)
	}
	w.checkInstances(3, 5)

	for _, revision := range []string{"r2", "r3"} { // one more of each, and an old one less
		revisions := map[string]int{}
		for _, instance := range sized(3, revision) {
			revisions[instance.GetRevision()]++
			if instance.GetVersion() != version || instance.GetName() == "" {
				w.Errorf("an instance: %v", instance)
			}
		}
		if revisions[revision] != 1 {
			w.Errorf("one instance of %s was to be made, and there are %v", revision, revisions)
		}
		left = idsOf(sized(2, revision, left[0]))
	}
	if w.counted("SuspendProcesses") == 0 {
		w.Error("the group balances its instances between zones")
	}
	if deleted := w.counted("DeleteLaunchTemplateVersions"); deleted != 1 {
		w.Errorf("%d versions of the launch template were deleted, want all but the first and the latest", deleted)
	}
	w.checkInstances(3, 7)
	w.set(func(a *awsProxy) {
		a.blind, a.canned["DescribeScalingActivities"] = true, "<R><DescribeScalingActivitiesResult><Activities><member>"+
			"<StatusCode>Failed</StatusCode><StatusMessage>no capacity</StatusMessage></member></Activities>"+
			"</DescribeScalingActivitiesResult></R>"
	})
	answer, err := w.pools.ReconcileMachinePool(w.soon(), w.pool(2, "r3"))
	if err != nil || answer.GetPhase() != failed || answer.GetReason() != "LaunchFailed" || answer.GetMessage() != "no capacity" ||
		answer.InstanceCount == nil {
		w.Errorf("a pool whose instances cannot be made: %v, %v", answer, err)
	}
	w.set(func(a *awsProxy) { a.blind = false })
	w.killAfter("DeleteAutoScalingGroup", func() error { _, err := w.deletePool(); return err })
	until(w, "the pool is gone", w.deletePool, func(a *infrastructurev1alpha1.DeleteMachinePoolResponse) bool {
		return a.GetState() == gone
	})
	w.checkInstances(1, 7)
	if templates := w.askEC2("DescribeLaunchTemplates"); strings.Contains(templates, "<launchTemplateId>") {
		w.Errorf("launch templates are left: %s", templates)
	}
}

// idsOf returns the provider IDs of instances, sorted.
func idsOf(instances []*infrastructurev1alpha1.Instance) []string {
	var ids []string
	for _, instance := range instances {
		ids = append(ids, instance.GetProviderId())
	}
	slices.Sort(ids)
	return ids
}

// checkVanished: an instance that was recorded and is not there any more is Failed, and never made again.
func (w *ec2) checkVanished(id string) {
	w.Helper()
	instance := id[strings.LastIndex(id, "/")+1:]
	w.ask("ec2", "2016-11-15", "TerminateInstances", "InstanceId.1", instance)
	for _, id := range []string{id, "aws:///" + awsRegion + "b/i-0123456789abcdef0"} {
		request := w.machine("cp-0-id", "#cloud-config")
		request.ProviderId = id
		if answer := w.asked(request); answer.GetPhase() != failed || answer.GetReason() != "InstanceGone" || answer.GetMessage() == "" {
			w.Errorf("a machine that has vanished: %v", answer)
		}
	}
	w.checkInstances(0, 7)
}

// checkEnd: what AWS does not let go yet is being deleted, and what never was or is not any more is gone.
func (w *ec2) checkEnd() {
	w.Helper()
	machine, err := w.deleteMachine("cp-0-id")
	if err != nil || machine.GetState() != gone {
		w.Errorf("a machine that has vanished: %v, %v", machine, err)
	}
	if empty, err := w.pools.ReconcileMachinePool(w.soon(), w.pool(0, "r1")); err != nil || empty.GetPhase() != ready {
		w.Errorf("a pool without instances: %v, %v", empty, err)
	}
	for _, want := range []infrastructurev1alpha1.DeletionState{deleting, gone} {
		if pool, err := w.deletePool(); err != nil || pool.GetState() != want {
			w.Errorf("a pool that is deleted: %v, %v, want %v", pool, err, want)
		}
	}
	w.set(func(a *awsProxy) { a.refuse = map[string]string{"DeleteSubnet": "DependencyViolation"} })
	cluster, err := w.deleteCluster("net")
	if err != nil || cluster.GetState() != deleting || !strings.Contains(cluster.GetMessage(), "DependencyViolation") {
		w.Errorf("a cluster of which AWS needs a part: %v, %v", cluster, err)
	}
	w.set(func(a *awsProxy) { a.refuse = nil })
	w.killAfter("DetachInternetGateway", func() error { _, err := w.deleteCluster("net"); return err })
	until(w, "the cluster is gone", func() (*infrastructurev1alpha1.DeleteClusterResponse, error) {
		return w.deleteCluster("net")
	}, func(a *infrastructurev1alpha1.DeleteClusterResponse) bool { return a.GetState() == gone })
	w.checkNetwork(0)
	machine, err = w.deleteMachine("never-id")
	if err != nil || machine.GetState() != gone {
		w.Errorf("a machine that never was: %v, %v", machine, err)
	}
}

// TestCheckEC2 has hookgate check make infrastructure: no rule is broken, and nothing is left. It takes all credentials
// for secrets, so the region is not among them.
func TestCheckEC2(t *testing.T) {
	w := newEC2(t, "AWS_DEFAULT_REGION="+awsRegion)
	file := filepath.Join(t.TempDir(), "infrastructure.yaml")
	text := "machine: {imageId: ami-0123456789abcdef0}\nmachinePool: {imageId: ami-0123456789abcdef0}\nwaitSeconds: 60\n" +
		"credentials: {aws_access_key_id: " + awsKey + ", aws_secret_access_key: " + awsSecret + ", aws_session_token: " + awsSession + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(w.soon(), process.Program(t, "HOOKGATE_BIN"), "check", "grpcs://"+w.address,
		"--ca", w.ca, "--infrastructure", file, "-v")
	output, err := check.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "pass  infrastructure.remove") {
		t.Errorf("%v\n%s", err, output)
	}
	w.checkInstances(0, 3)
	w.checkNetwork(0)
}
