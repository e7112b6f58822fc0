" What a user of Vim with ALE does in a repository of somebody else; prints what ALE shows as JSON lines.
set nocompatible nomore hidden noswapfile encoding=utf-8
let &runtimepath = '/usr/share/vim-ale,' . &runtimepath
let g:ale_lint_delay = 50
let g:ale_linters_explicit = 1
let g:ale_linters = {'json': ['nexus'], 'markdown': ['nexus']}
filetype on

function! s:Tell(name, value) abort
  call writefile([json_encode({a:name : a:value})], $NEXUS_OUT, 'a')
endfunction
function! s:Problems() abort
  return map(copy(ale#engine#GetLoclist(bufnr(''))), {_, one -> one.text})
endfunction
function! s:WaitFor(Probe) abort
  for _ in range(400)
    if a:Probe()
      return 1
    endif
    sleep 50m
  endfor
  return 0
endfunction

try
  runtime! plugin/ale.vim
  if !exists('g:loaded_ale_dont_use_this_in_other_plugins_please')
    call s:Tell('no ALE', v:true)
    qall!
  endif
  for s:type in ['json', 'markdown']
    call ale#linter#Define(s:type, {
    \   'name': 'nexus',
    \   'lsp': 'stdio',
    \   'executable': split($NEXUS_COMMAND)[0],
    \   'command': $NEXUS_COMMAND,
    \   'project_root': {buffer -> $NEXUS_ROOT},
    \})
  endfor
  execute 'edit' $NEXUS_ROOT . '/.nexus3/config.json'
  set filetype=json
  ALELint
  call s:WaitFor({-> len(s:Problems()) > 0})
  call s:Tell('opened', s:Problems())
  call system($NEXUS_KILL)
  call setline(1, '{"tools": {"summery": false}}')
  ALELint
  sleep 500m
  call s:WaitFor({-> len(s:Problems()) > 0})
  call s:Tell('after the daemon was killed', s:Problems())
  call setline(1, '{"tools": {"summary": false}}')
  ALELint
  call s:WaitFor({-> len(s:Problems()) == 0})
  call s:Tell('fixed', s:Problems())
  edit!
  set filetype=json
  ALELint
  call s:WaitFor({-> len(s:Problems()) > 0})
  call s:Tell('reloaded', s:Problems())
  execute 'edit' $NEXUS_ROOT . '/CLAUDE.md'
  set filetype=markdown
  ALELint
  call s:WaitFor({-> len(s:Problems()) > 0})
  call s:Tell('a link', s:Problems())
catch
  call s:Tell('exception', v:exception . ' ' . v:throwpoint)
endtry
qall!
