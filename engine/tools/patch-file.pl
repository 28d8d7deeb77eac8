#!/usr/bin/perl
# A patch file and a commit say the same thing; this turns one into the other and checks the file.
#
#   patch-file.pl from-commit TREE COMMIT   prints the patch file: no hashes, dates, authors or versions
#   patch-file.pl message FILE              prints the commit message that the file holds
#   patch-file.pl check FILE REPOSITORY     prints what is wrong with the file, one line each
#   patch-file.pl paths FILE                prints the upstream paths that it changes
use strict;
use warnings;

my @required = qw(Reason Why-not-a-module Upstream Retire-when Touches Tests);
my $field = qr/^(Reason|Why-not-a-module|Upstream|Retire-when|Touches|Tests):/;

sub slurp
{
	my ($path) = @_;
	open my $in, '<', $path or die qq(could not open "$path": $!\n);
	local $/;
	return scalar <$in>;
}

sub git
{
	my ($tree, @command) = @_;
	open my $in, '-|', 'git', '-C', $tree, @command or die "could not run git: $!\n";
	local $/;
	my $output = <$in> // '';
	close $in or die "git @command failed\n";
	return $output;
}

# Counts added and removed lines of each path, by the hunks' own arithmetic.
sub changes
{
	my ($diff) = @_;
	my (%count, @paths, $path);
	my ($old, $new) = (0, 0);
	foreach my $line (split /\n/, $diff)
	{
		if ($old > 0 || $new > 0)
		{
			my $sign = substr($line, 0, 1);
			if ($sign eq '+') { $count{$path}[0]++; $new--; }
			elsif ($sign eq '-') { $count{$path}[1]++; $old--; }
			elsif ($sign ne '\\') { $old--; $new--; }
		}
		elsif ($line =~ m{^diff --git a/.* b/(.*)$})
		{
			$path = $1;
			push @paths, $path;
			$count{$path} = [ 0, 0 ];
		}
		elsif ($line =~ /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/)
		{
			($old, $new) = ($1 // 1, $2 // 1);
		}
	}
	return (\@paths, \%count);
}

sub touches
{
	my ($paths, $count) = changes(@_);
	return join ",\n ", map {
		my ($added, $removed) = @{ $count->{$_} };
		$_ . ($added ? " +$added" : '') . ($removed ? " -$removed" : '')
	} @$paths;
}

# Replaces the Touches field, or adds it before Tests or at the end.
sub with_touches
{
	my ($message, $touches) = @_;
	my (@lines, $placed, $inside);
	foreach my $line (split /\n/, $message)
	{
		$inside = 0 unless $line =~ /^ /;
		if ($line =~ /^Touches:/) { $inside = 1; }
		next if $inside;
		if ($line =~ /^Tests:/ && !$placed) { push @lines, "Touches: $touches"; $placed = 1; }
		push @lines, $line;
	}
	if (!$placed)
	{
		# Fields are a paragraph of their own.
		push @lines, '' unless @lines > 1 && $lines[-1] =~ /^ |$field/;
		push @lines, "Touches: $touches";
	}
	return join("\n", @lines) . "\n";
}

sub split_file
{
	my ($text) = @_;
	my ($message, $diff) = split /^---\n/m, $text, 2;
	$message =~ s/^Subject: //;
	return ($message, $diff // '');
}

sub from_commit
{
	my ($tree, $commit) = @_;
	my $message = git($tree, 'log', '-1', '--format=%B', $commit);
	$message =~ s/^Patch: .*\n//mg;
	$message =~ s/\s+\z/\n/;
	my $diff = git($tree, 'diff-tree', '-p', '-U3', '--no-renames', '--no-color', '--no-ext-diff',
		'--no-textconv', '--diff-algorithm=myers', '--src-prefix=a/', '--dst-prefix=b/', '--no-commit-id', $commit);
	$diff =~ s/^index [0-9a-f]+\.\.[0-9a-f]+(?: \d+)?\n//mg;
	return 'Subject: ' . with_touches($message, touches($diff)) . "---\n$diff";
}

sub check
{
	my ($path, $repository) = @_;
	my $text = slurp($path);
	my ($message, $diff) = split_file($text);
	my (%value, $name, @wrong);
	foreach my $line (split /\n/, $message)
	{
		if ($line =~ $field)
		{
			$name = $1;
			push @wrong, "field $name appears twice" if exists $value{$name};
			$value{$name} = $line =~ s/^[^:]*:\s*//r;
		}
		elsif ($line =~ /^ / && defined $name) { $value{$name} .= $line; }
		else { undef $name; }
	}
	push @wrong, 'field Subject is missing' unless $text =~ /\ASubject: \S/;
	foreach my $required (@required)
	{
		push @wrong, "field $required is missing" unless ($value{$required} // '') =~ /\S/;
	}
	push @wrong, 'Reason is none of hook, backport, incompatible, fix'
	  if exists $value{Reason} && $value{Reason} !~ /^(hook|backport|incompatible|fix)\b/;
	my $touches = touches($diff) =~ s/\n//gr;
	push @wrong, qq(Touches differs from the diff, which says "$touches")
	  if ($value{Touches} // '') ne $touches;
	foreach my $test (($value{Tests} // '') =~ m{\b(engine/[\w./-]*\w)}g)
	{
		push @wrong, qq(Tests names "$test", which does not exist) unless -e "$repository/$test";
	}
	return @wrong;
}

my ($verb, @arguments) = @ARGV;
if ($verb eq 'from-commit') { print from_commit(@arguments); }
elsif ($verb eq 'message') { print((split_file(slurp($arguments[0])))[0]); }
elsif ($verb eq 'paths') { print map { "$_\n" } @{ (changes((split_file(slurp($arguments[0])))[1]))[0] }; }
elsif ($verb eq 'check')
{
	my @wrong = check(@arguments);
	print map { "$_\n" } @wrong;
	exit(@wrong ? 1 : 0);
}
else { die "usage: patch-file.pl from-commit|message|paths|check …\n"; }
