// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cloud is a cloud that exists in the memory of one process: machines that boot from kubeadm's bootstrap data
// and join clusters whose API servers answer on ports of this host. The tests of the infrastructure provider put
// extensions in front of it; it is a process of its own, so that an extension can be killed while the clusters live.
// The clusters are those of Cluster API's own in-memory provider (the module sigs.k8s.io/cluster-api/test); the cloud,
// the machines, and groups of machines are this package.
//
// # API
//
// JSON over HTTP on loopback; the types are in package api. {key} is the caller's own name for a thing, {id} is the
// cloud's or the caller's. An answer other than 2xx is an [api.Error].
//
//	PUT    /networks/{key}            api.NetworkSpec -> api.Network; 201 if it is new
//	GET    /networks/{id}             api.Network
//	DELETE /networks/{id}             202, 404 once it is gone; 409 while it has machines or groups
//	GET    /networks/{id}/kubeconfig  a kubeconfig of an administrator, once the cluster is initialized
//	PUT    /machines/{key}            api.MachineSpec -> api.Machine; 201 if it is new
//	POST   /machines                  api.MachineSpec -> api.Machine; 201, and one more machine every time
//	GET    /machines                  api.MachineList; ?network=…, ?tag=name=value (repeated: all of them)
//	GET    /machines/{id}             api.Machine
//	PATCH  /machines/{id}             api.MachineChange -> api.Machine; what happens on a machine that runs
//	DELETE /machines/{id}             202, 404 once it is gone
//	POST   /machines/{id}/vanish      204; the machine is gone without a trace, as after a failure of its host
//	PUT    /groups/{key}              api.GroupSpec -> api.Group; 201 if it is new
//	GET    /groups/{id}               api.Group
//	DELETE /groups/{id}               202, 404 once its last instance is gone
//	GET    /counts                    api.Counts
//	GET    /events                    api.EventList; ?after=sequence
//	GET    /faults                    api.Faults
//	PUT    /faults                    api.Faults, in place of those before
//	DELETE /faults                    204; hanging requests go on
//
// Two ways lead to a machine, as in real clouds. PUT is idempotent: the same key is the same machine. POST is not,
// unless the caller sends a client token, or looks for its own tag before; so a test sees an extension that makes two.
// A key that was deleted may be used again, and is then another machine: GET /counts has it in repeated.
//
// PUT of a machine that is there changes nothing, and may leave out the bootstrap data. A group takes away only the
// instances that remove names; surplus ones stay, and it makes missing ones anew whenever it has fewer than its
// replicas. Instances of a group are machines too.
//
// # What a machine does
//
// It takes everything from its bootstrap data, cloud-config or Ignition, as a real machine would: the certificates, the
// configuration of kubeadm, and with it the endpoint, the bootstrap token, labels and taints.
//
//   - kubeadm init: the first control plane machine. It needs the authorities of the cluster and of etcd with their
//     keys (RSA only), and the network's endpoint as controlPlaneEndpoint. A network is initialized once.
//   - kubeadm join: it needs an API server that runs, the network's endpoint, the hash of the cluster's authority and a
//     bootstrap token that is current in the cluster. Until then it tries again, for the join timeout; then it has
//     failed, with the reason JoinFailed. A control plane machine also needs the cluster's own authorities.
//
// A Node's provider ID is the kubelet's argument provider-id if there is one; otherwise it is set, as a cloud controller
// manager would. A machine that is deleted leaves its Node, no longer ready: Cluster API deletes it. Pods of Nodes that
// are gone go too, and etcd elects a new leader if its leader's machine is gone.
//
// # Limits
//
// The API servers let in everyone, and listen on all addresses; upstream decides this. They have no evictions, no status
// subresource, no server-side apply, no garbage collection, and treat strategic merge patches as merge patches. No Pods
// run other than those of the control plane. Of cloud-init's templates only the metadata instance_id, provider_id,
// local_hostname and hostname are known, and of Ignition only files. Nothing survives the process.
//
// A body has at most 2 MiB; there are at most 128 networks, 4,096 machines, 512 groups, 1,000 instances of a group,
// 32 rules of faults, 20,000 events, and 256 requests at a time.
//
// A Cloud is safe for concurrent use.
package cloud
