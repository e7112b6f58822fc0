--- Commands, and the language server for the files that Nexus reads.

if vim.g.loaded_nexus then
  return
end
vim.g.loaded_nexus = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.notify(
    'nexus: Neovim 0.11 or later is needed; this is ' .. tostring(vim.version()),
    vim.log.levels.ERROR
  )
  return
end

local function command(name, view, options)
  vim.api.nvim_create_user_command(name, function(call)
    require('nexus.view')[view](call)
  end, options)
end

--- A command of `nexus.manage`, which also completes its arguments.
local function manage(name, action, options, complete)
  options.complete = complete
    and function(...)
      return require('nexus.manage')[complete](...)
    end
  vim.api.nvim_create_user_command(name, function(call)
    require('nexus.manage')[action](call)
  end, options)
end

command('NexusContext', 'context', { nargs = '*', desc = 'What the model gets, and what each part costs' })
command('NexusPreview', 'preview', { desc = 'The system prompt, and the file that each part comes from' })
command('NexusLayers', 'layers', { desc = 'Layers of this folder: files, status, problems' })
command('NexusUsage', 'usage', { desc = 'Token table of the session' })
command('NexusInit', 'init', { nargs = '?', complete = 'dir', desc = 'Create .nexus3/; never overwrites' })
vim.api.nvim_create_user_command('NexusAssistant', function(call)
  require('nexus.assistants').assistant(call)
end, {
  nargs = '?',
  desc = 'What Claude Code, Codex or another assistant reads here, and its running session',
  complete = function(typed)
    return require('nexus.assistants').complete(typed)
  end,
})
vim.api.nvim_create_user_command('NexusReaders', function(call)
  require('nexus.assistants').readers(call)
end, { desc = 'Which assistant reads which file' })
manage('NexusSkills', 'skills', { desc = 'Skills of this folder' })
manage(
  'NexusSkill',
  'skill',
  { nargs = 1, bang = true, range = true, desc = 'Text of a skill; with ! put below this line' },
  'complete_skill'
)
manage('NexusAgents', 'agents', { desc = 'Running agents of this folder' })
manage('NexusAgent', 'agent', { nargs = '+', desc = 'Start, message or end an agent' }, 'complete_agent')
manage('NexusMemory', 'memory', { nargs = '*', desc = 'What earlier conversations say' })
manage('NexusKnowledge', 'knowledge', { nargs = '*', desc = 'Passages of the documents of this folder' })
manage('NexusCompact', 'compact', { nargs = '?', desc = 'Compact a conversation' }, 'complete_session')
manage(
  'NexusUndoCompaction',
  'undo_compaction',
  { nargs = '?', desc = 'Undo the last compaction' },
  'complete_session'
)
vim.api.nvim_create_user_command('NexusChat', function(call)
  require('nexus.chat').chat(call)
end, {
  nargs = '?',
  desc = 'Chat with the configured provider',
  complete = function(typed)
    return require('nexus.manage').complete_session(typed)
  end,
})
manage('NexusStatus', 'status', { desc = 'State of the daemon and its folders' })

if vim.g.nexus_enable ~= false then
  vim.lsp.enable('nexus')
end
