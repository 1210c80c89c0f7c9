// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import static java.nio.file.LinkOption.NOFOLLOW_LINKS;

import java.io.IOException;
import java.net.ConnectException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.ThreadLocalRandom;

/**
 * The path of a Unix socket that only its owner may connect to, from the first moment on: Java has no umask, so the
 * socket is bound in a folder of its own, and gets its path when it has its mode.
 */
final class UnixSocket {
  private final Path path;
  private final Path folder;
  private boolean published;

  /** Removes the socket that a killed server has left at the path. */
  UnixSocket(Path path) throws IOException {
    this.path = path.toAbsolutePath();
    removeStale();
    // A short name, because the whole path of a socket has room for about a hundred bytes.
    folder = this.path.resolveSibling("." + Integer.toHexString(ThreadLocalRandom.current().nextInt()));
    try {
      Files.createDirectory(folder, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    } catch (IOException e) {
      throw new IOException("cannot write to " + folder.getParent() + " (" + e.getClass().getSimpleName() + ")");
    }
  }

  /** Returns where to bind the socket. */
  Path place() {
    return folder.resolve("s");
  }

  /** Gives the bound socket its path. */
  void publish() throws IOException {
    try {
      Files.setPosixFilePermissions(place(), PosixFilePermissions.fromString("rw-------"));
      Files.createLink(path, place()); // a rename would replace the socket of a server that was quicker
      published = true;
    } catch (FileAlreadyExistsException e) {
      throw new IOException("another server listens there");
    }
    removeFolder();
  }

  /** Removes what is there of the socket. */
  void close() {
    try {
      if (published) {
        Files.deleteIfExists(path);
      }
      removeFolder();
    } catch (IOException e) {
      Log.LOGGER.warning("remove " + path + ": " + e.getMessage());
    }
  }

  private void removeFolder() throws IOException {
    Files.deleteIfExists(place());
    Files.deleteIfExists(folder);
  }

  private void removeStale() throws IOException {
    if (!Files.exists(path, NOFOLLOW_LINKS)) {
      return;
    }
    if (!Files.readAttributes(path, BasicFileAttributes.class, NOFOLLOW_LINKS).isOther()) {
      throw new IOException("there is a file that is not a socket");
    }
    try (SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX)) {
      channel.connect(UnixDomainSocketAddress.of(path));
    } catch (ConnectException e) { // nothing listens
      Files.delete(path);
      return;
    }
    throw new IOException("another server listens there");
  }
}
