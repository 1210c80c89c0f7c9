#!/bin/sh
# Writes the jar, its sources, its documentation and its POM into a folder: ./build.sh FOLDER. VERSION is that of the release.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
version=$(echo "${VERSION:-}" | sed -nE 's/^v([0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?)$/\1/p')
: "${version:=0.0.0-dev}"
proto=$(cd ../../proto && pwd)
rm -rf target/package && mkdir -p target/package/src
cp -R src/main target/package/src/
mkdir -p target/package/src/main/resources/META-INF
cp ../../LICENSE target/package/src/main/resources/META-INF/
sed "s|<version>0.0.0-dev</version>|<version>$version</version>|" pom.xml > target/package/pom.xml
mvn -B -q -ntp -f target/package/pom.xml -Dhookgate.proto="$proto" package javadoc:jar
rm -f "$folder"/hookgate-*.jar "$folder"/hookgate-*.pom
for kind in '' -sources -javadoc; do cp "target/package/target/hookgate-$version$kind.jar" "$folder/"; done
cp target/package/pom.xml "$folder/hookgate-$version.pom"
